#include "tools/schedule_json.h"

#include <charconv>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

/// A time in seconds or in the unit of a bare input: an integer where it is one, otherwise the
/// double nearest to the exact decimal.
Json number(Duration duration, const TypedCosts& costs) {
  if (duration % costs.second_or_one == Duration{}) {
    return duration.count() / costs.second_or_one.count();
  }
  const std::string text = exact_decimal(duration, costs.second_or_one);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Json numbers(const std::vector<Duration>& durations, const TypedCosts& costs) {
  Json list = Json::array();
  for (const Duration duration : durations) {
    list.push_back(number(duration, costs));
  }
  return list;
}

/// One number, or one per virtual stage where they differ by stage.
Json by_stage(const TypedCosts& costs, Duration ChunkCosts::*cost) {
  const std::vector<ChunkCosts>& stages = costs.ticks.stages;
  if (stages.size() == 1) {
    return number(stages.front().*cost, costs);
  }
  Json list = Json::array();
  for (const ChunkCosts& chunk : stages) {
    list.push_back(number(chunk.*cost, costs));
  }
  return list;
}

Json costs_json(const TypedCosts& costs) {
  const CostUses& uses = costs.uses;
  Json json = {{"forward", by_stage(costs, &ChunkCosts::forward)},
               {"backward", by_stage(costs, &ChunkCosts::backward)}};
  if (uses.split_backwards) {
    json["dgrad"] = by_stage(costs, &ChunkCosts::input_gradient);
    json["wgrad"] = by_stage(costs, &ChunkCosts::weight_gradient);
  }
  if (uses.overlapped) {
    Json list = Json::array();
    for (const ChunkCosts& chunk : costs.ticks.stages) {
      list.push_back(number(chunk.overlapped.value_or(chunk.forward + chunk.backward), costs));
    }
    json["overlapped"] = list.size() == 1 ? list.front() : list;
    json["overlap_semantics"] = costs.ticks.sequential ? "sequential" : "atomic";
  }
  json["p2p"] = number(costs.ticks.p2p, costs);
  const bool rendezvous = costs.ticks.mode == PointToPoint::kRendezvous;
  json["p2p_mode"] = rendezvous ? "rendezvous" : "eager";
  if (rendezvous) {
    json["batched"] = costs.ticks.batched;
  }
  json["unused"] = Json::array();
  for (const UnusedOption& option : costs.unused) {
    json["unused"].push_back(option.name);
  }
  json["assumed"] = costs.assumed;
  return json;
}

/// Per rank one value for each unit, by the place of its first action.
template <typename Value>
Json per_unit(const Schedule& schedule, const Value& value) {
  Json lists = Json::array();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<Action>& list = schedule.ranks[rank];
    Json::array_t row;
    row.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); i += unit_length(list[i])) {
      row.emplace_back(value(rank, i));
    }
    lists.emplace_back(std::move(row));
  }
  return lists;
}

Json action_lists(const Schedule& schedule) {
  return per_unit(schedule, [&](std::size_t rank, std::size_t i) {
    const Action* const unit = &schedule.ranks[rank][i];
    return unit_text({unit, unit_length(*unit)});
  });
}

Json head(const Schedule& schedule, const TypedCosts& costs) {
  Json json = {{"name", schedule.name},
               {"pp", schedule.size.pp},
               {"micro_batches", schedule.size.micro_batches},
               {"vpp", schedule.size.vpp}};
  if (schedule.size.slices > 1) {
    json["slices"] = schedule.size.slices;
  }
  if (schedule.copies() > 1) {
    json["model_copies"] = schedule.copies();
  }
  if (!schedule.note.empty()) {
    json["note"] = schedule.note;
  }
  json["unit"] = costs.has_unit() ? "s" : "";
  json["costs"] = costs_json(costs);
  return json;
}

}  // namespace

Json schedule_json(const Schedule& schedule,
                   const ScheduleTiming& timing,
                   const TypedCosts& costs) {
  Json json = head(schedule, costs);
  json["makespan"] = number(timing.makespan, costs);
  json["busy"] = numbers(timing.busy, costs);
  json["bubble"] = numbers(timing.bubble, costs);
  json["span_bubble"] = numbers(timing.span_bubble, costs);
  json["peak_in_flight"] = peak_in_flight(schedule);
  json["messages"] = message_count(schedule);
  json["actions"] = action_lists(schedule);
  json["starts"] = per_unit(schedule, [&](std::size_t rank, std::size_t i) {
    return number(timing.start[rank][i].time_since_epoch(), costs);
  });
  return json;
}

Json deadlock_json(const Schedule& schedule, const TypedCosts& costs, const std::string& grid) {
  Json json = head(schedule, costs);
  json["makespan"] = nullptr;
  json["deadlock"] = grid;
  json["peak_in_flight"] = peak_in_flight(schedule);
  json["messages"] = message_count(schedule);
  json["actions"] = action_lists(schedule);
  return json;
}

}  // namespace foretrain
