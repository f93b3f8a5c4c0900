#include "tools/schedule_text.h"

#include "sim/base/format.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

constexpr std::size_t kMostValues = 12;
constexpr int kLabel = 13;  // columns of the words on the left

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

std::string share(Duration part, Duration whole) {
  const auto all = static_cast<double>(std::max<std::int64_t>(1, whole.count()));
  return percent(static_cast<double>(part.count()) / all);
}

std::string line(const char* name, const std::string& text) {
  return pad(name, kLabel) + text + "\n";
}

std::string heading(const Schedule& schedule, const TypedCosts& costs) {
  const ScheduleSize& size = schedule.size;
  std::string text = schedule.name + " · pp " + std::to_string(size.pp) + " · " +
                     with_commas(size.micro_batches) + " " +
                     plural("micro-batch", size.micro_batches);
  if (size.vpp > 1) {
    text += " · vpp " + std::to_string(size.vpp);
  }
  for (const ScheduleEntry& entry : schedule_table()) {
    if (entry.name == schedule.name && entry.uses_group) {
      text += " · group " + std::to_string(size.group == 0 ? size.pp : size.group);
    }
  }
  text += " · forward " + costs.printed(costs.ticks.stages.front().forward) + ", backward " +
          costs.printed(costs.ticks.stages.front().backward);
  if (costs.ticks.p2p != Duration{}) {
    text += ", p2p " + costs.printed(costs.ticks.p2p);
  }
  return text + (size.vpp > 1 ? " (per chunk)\n" : "\n");
}

std::string notes(const Schedule& schedule, const TypedCosts& costs) {
  std::string text;
  if (schedule.name == "interleaved" && schedule.size.vpp == 1 && schedule.size.pp > 1) {
    text += line("note", "one chunk a rank: the order is that of eager 1F1B; --vpp sets chunks");
  }
  for (const std::string& option : costs.unused) {
    text += line("note",
                 "--" + option + " is not used: " + schedule.name + " runs whole backwards" +
                     (option == "overlapped" ? " and no overlapped units" : ", --backward"));
  }
  return text;
}

/// A time in seconds or in the unit of a bare input: an integer where it is one, otherwise the
/// double nearest to the exact decimal.
nlohmann::ordered_json number(Duration duration, const TypedCosts& costs) {
  const std::string text = exact_decimal(duration, costs.second_or_one);
  if (text.find('.') == std::string::npos) {
    return duration.count() / costs.second_or_one.count();
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

nlohmann::ordered_json numbers(const std::vector<Duration>& durations, const TypedCosts& costs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Duration duration : durations) {
    list.push_back(number(duration, costs));
  }
  return list;
}

nlohmann::ordered_json action_lists(const Schedule& schedule) {
  nlohmann::ordered_json lists = nlohmann::ordered_json::array();
  for (const std::vector<Action>& list : schedule.ranks) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (const Action& action : list) {
      row.push_back(to_string(action));
    }
    lists.push_back(std::move(row));
  }
  return lists;
}

nlohmann::ordered_json sizes(const Schedule& schedule) {
  return {{"name", schedule.name},
          {"pp", schedule.size.pp},
          {"micro_batches", schedule.size.micro_batches},
          {"vpp", schedule.size.vpp}};
}

}  // namespace

std::string schedule_text(const Schedule& schedule,
                          const ScheduleTiming& timing,
                          const TypedCosts& costs,
                          int width) {
  const auto time = [&](Duration duration) { return costs.printed(duration); };
  const auto count = [](std::int32_t value) { return std::to_string(value); };
  std::string text = heading(schedule, costs) + "\n";
  text += schedule_picture(schedule, timing, {.width = width, .unit = costs.unit});
  text += "\n";
  text += line("makespan", time(timing.makespan));
  text += line("busy", per_rank(timing.busy, time));
  text += line("bubble",
               per_rank(timing.bubble, time) + ": makespan less busy; " +
                   share(timing.bubble.front(), timing.makespan) + " of the makespan, " +
                   share(timing.bubble.front(), timing.busy.front()) + " of the busy time");
  text +=
      line("span bubble",
           per_rank(timing.span_bubble, time) + ": idle between a rank's first and last action");
  text += line("in flight",
               per_rank(peak_in_flight(schedule), count) +
                   (schedule.size.vpp > 1 ? ": chunk activations" : ": micro-batches") +
                   " held at most");
  text += line("messages", with_commas(message_count(schedule)) + " between ranks");
  return text + notes(schedule, costs);
}

nlohmann::ordered_json schedule_json(const Schedule& schedule,
                                     const ScheduleTiming& timing,
                                     const TypedCosts& costs) {
  nlohmann::ordered_json json = sizes(schedule);
  json["unit"] = costs.has_unit() ? "s" : "";
  json["costs"] = {{"forward", number(costs.ticks.stages.front().forward, costs)},
                   {"backward", number(costs.ticks.stages.front().backward, costs)},
                   {"p2p", number(costs.ticks.p2p, costs)},
                   {"unused", costs.unused}};
  json["makespan"] = number(timing.makespan, costs);
  json["busy"] = numbers(timing.busy, costs);
  json["bubble"] = numbers(timing.bubble, costs);
  json["span_bubble"] = numbers(timing.span_bubble, costs);
  json["peak_in_flight"] = peak_in_flight(schedule);
  json["messages"] = message_count(schedule);
  json["actions"] = action_lists(schedule);
  nlohmann::ordered_json starts = nlohmann::ordered_json::array();
  for (const std::vector<Instant>& list : timing.start) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (const Instant at : list) {
      row.push_back(number(at.time_since_epoch(), costs));
    }
    starts.push_back(std::move(row));
  }
  json["starts"] = std::move(starts);
  return json;
}

nlohmann::ordered_json deadlock_json(const Schedule& schedule, const std::string& grid) {
  nlohmann::ordered_json json = sizes(schedule);
  json["makespan"] = nullptr;
  json["deadlock"] = grid;
  json["actions"] = action_lists(schedule);
  return json;
}

}  // namespace foretrain
