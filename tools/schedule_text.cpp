#include "tools/schedule_text.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <numeric>

namespace foretrain {
namespace {

constexpr std::size_t kMostValues = 12;
constexpr int kLabelWidth = 13;  // columns of the words on the left

/// "9 on every rank", or one value per rank, the middle of a long list left out.
template <typename Value, typename Print>
std::string per_rank(const std::vector<Value>& values, const Print& print) {
  const bool same = std::all_of(
      values.begin(), values.end(), [&](const Value& value) { return value == values.front(); });
  if (same) {
    return print(values.front()) + (values.size() > 1 ? " on every rank" : "");
  }
  std::string text;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (values.size() > kMostValues && rank == kMostValues / 2) {
      rank = values.size() - kMostValues / 2;
      text += ", ...";
    }
    text += (rank == 0 ? "" : ", ") + print(values[rank]);
  }
  return text + " (ranks 0 to " + std::to_string(values.size() - 1) + ")";
}

double sum(const std::vector<Duration>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double all, Duration value) {
    return all + static_cast<double>(value.count());
  });
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string listed(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : between) + part;
  }
  return text;
}

/// "forward 1", or "forward 3.15 to 3.901 ms by stage".
std::string cost_text(const char* name, const TypedCosts& costs, Duration ChunkCosts::*cost) {
  const auto less = [&](const ChunkCosts& a, const ChunkCosts& b) { return a.*cost < b.*cost; };
  const auto [least, most] =
      std::minmax_element(costs.ticks.stages.begin(), costs.ticks.stages.end(), less);
  const std::string text = std::string(name) + " ";
  if ((*least).*cost == (*most).*cost) {
    return text + costs.printed((*least).*cost);
  }
  return text + exact_decimal((*least).*cost, costs.unit) + " to " + costs.printed((*most).*cost) +
         " by stage";
}

/// What an overlapped unit takes; "by stage" where it differs.
std::string overlapped_text(const TypedCosts& costs) {
  const std::vector<ChunkCosts>& stages = costs.ticks.stages;
  const bool given = stages.front().overlapped.has_value() && !costs.ticks.sequential;
  const bool same = std::all_of(stages.begin(), stages.end(), [&](const ChunkCosts& chunk) {
    return chunk.overlapped == stages.front().overlapped;
  });
  if (!given) {
    return costs.ticks.sequential ? "overlapped units in sequence" : "overlapped the sum";
  }
  return "overlapped " + (same ? costs.printed(*stages.front().overlapped) : "by stage");
}

std::string costs_text(const Schedule& schedule, const TypedCosts& costs) {
  std::vector<std::string> parts = {cost_text("forward", costs, &ChunkCosts::forward)};
  if (costs.uses.whole_backwards) {
    parts.push_back(cost_text("backward", costs, &ChunkCosts::backward));
  }
  if (costs.uses.split_backwards) {
    parts.push_back(cost_text("dgrad", costs, &ChunkCosts::input_gradient));
    parts.push_back(cost_text("wgrad", costs, &ChunkCosts::weight_gradient));
  }
  if (costs.uses.overlapped) {
    parts.push_back(overlapped_text(costs));
  }
  const bool rendezvous = costs.ticks.mode == PointToPoint::kRendezvous;
  if (costs.ticks.p2p != Duration{} || rendezvous) {
    const char* const order = costs.ticks.batched ? " rendezvous" : " rendezvous, unbatched";
    parts.push_back("p2p " + costs.printed(costs.ticks.p2p) + (rendezvous ? order : ""));
  }
  std::string text = listed(parts, ", ");
  if (schedule.size.slices > 1) {
    text += " (per slice)";
  } else if (schedule.size.vpp > 1) {
    text += " (per chunk)";
  }
  return text;
}

std::string heading(const Schedule& schedule, const TypedCosts& costs, int width) {
  const ScheduleSize& size = schedule.size;
  std::vector<std::string> parts = {
      schedule.name,
      "pp " + std::to_string(size.pp),
      with_commas(size.micro_batches) + " " + plural("micro-batch", size.micro_batches)};
  if (size.vpp > 1) {
    parts.push_back("vpp " + std::to_string(size.vpp));
  }
  const ScheduleEntry* const entry = find_schedule(schedule.name);
  if (entry != nullptr && entry->uses_group) {
    parts.push_back("group " + std::to_string(size.group == 0 ? size.pp : size.group));
  }
  if (size.slices > 1) {
    parts.push_back(std::to_string(size.slices) + " slices");
  }
  if (schedule.copies() > 1) {
    parts.push_back("2 copies of the model");
  }
  parts.push_back(costs_text(schedule, costs));
  return wrapped("", listed(parts, " · "), 2, width);
}

std::string notes(const Schedule& schedule, const TypedCosts& costs, int width) {
  std::vector<std::string> texts = costs.assumed;
  if (!schedule.note.empty()) {
    texts.push_back(schedule.note);
  }
  if (schedule.name == "interleaved" && schedule.size.vpp == 1 && schedule.size.pp > 1) {
    texts.emplace_back("one chunk a rank: the order is that of eager 1F1B; --vpp sets chunks");
  }
  for (const UnusedOption& option : costs.unused) {
    texts.push_back("--" + option.name + " is not used: " + option.why);
  }
  std::string all;
  for (const std::string& text : texts) {
    all += wrapped(pad("note", kLabelWidth), text, kLabelWidth, width);
  }
  return all;
}

std::string held_units(const Schedule& schedule) {
  if (schedule.size.slices > 1) {
    return "slice activations";
  }
  if (schedule.size.vpp > 1) {
    return "chunk activations (1/" + std::to_string(schedule.size.vpp) + " of a rank's layers)";
  }
  return schedule.copies() > 1 ? "micro-batches of either copy" : "micro-batches";
}

/// What unequal ranks leave: the busiest sets the pace.
std::string balance(const ScheduleTiming& timing) {
  const auto busiest = std::max_element(timing.busy.begin(), timing.busy.end());
  const auto ranks = static_cast<double>(timing.busy.size());
  const double share = ratio(sum(timing.busy) / ranks, static_cast<double>(busiest->count()));
  return percent(share) + ": rank " + std::to_string(busiest - timing.busy.begin()) +
         " is the busiest; " + std::to_string(timing.busy.size()) + " ranks do the work of " +
         fixed(share * ranks, 2) + " like it";
}

std::string figures(const Schedule& schedule,
                    const ScheduleTiming& timing,
                    const TypedCosts& costs,
                    int width) {
  const auto time = [&](Duration duration) { return costs.printed(duration); };
  const auto count = [](std::int32_t value) { return std::to_string(value); };
  const auto line = [&](const char* name, const std::string& text) {
    return wrapped(pad(name, kLabelWidth), text, kLabelWidth, width);
  };
  std::string text = line("makespan", time(timing.makespan));
  text += line("busy", per_rank(timing.busy, time));
  const double all =
      static_cast<double>(timing.makespan.count()) * static_cast<double>(timing.busy.size());
  text += line("bubble",
               per_rank(timing.bubble, time) + ": makespan less busy; " +
                   percent(ratio(sum(timing.bubble), all)) + " of the makespan, " +
                   percent(ratio(sum(timing.bubble), sum(timing.busy))) + " of the busy time");
  text +=
      line("span bubble",
           per_rank(timing.span_bubble, time) + ": idle between a rank's first and last action");
  if (std::adjacent_find(timing.busy.begin(), timing.busy.end(), std::not_equal_to<>{}) !=
      timing.busy.end()) {
    text += line("balance", balance(timing));
  }
  text += line(
      "in flight",
      per_rank(peak_in_flight(schedule), count) + ": " + held_units(schedule) + " held at most");
  return text + line("messages", with_commas(message_count(schedule)) + " between ranks");
}

}  // namespace

std::string schedule_text(const Schedule& schedule,
                          const ScheduleTiming& timing,
                          const TypedCosts& costs,
                          int width) {
  return heading(schedule, costs, width) + "\n" +
         schedule_picture(schedule, timing, {.width = width, .unit = costs.unit}) + "\n" +
         figures(schedule, timing, costs, width) + notes(schedule, costs, width);
}

}  // namespace foretrain
