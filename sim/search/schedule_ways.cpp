// The ways to run a scenario under a schedule: chunks, slices and how layers are split.
#include "foretrain/compare.h"
#include "foretrain/schedule.h"
#include "sim/scenario/json_value.h"
#include "sim/search/stage_lists.h"

#include <algorithm>

namespace foretrain {
namespace {

std::string setting(const std::string& path, const std::string& value) {
  return path + "=" + value;
}

std::string list_text(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return "[" + text + "]";
}

/// What the scenario says of its schedule, under another name; what that one lacks is left out.
std::string section(const ScheduleSpec& own,
                    const ScheduleEntry* entry,
                    const ScheduleChoice& choice,
                    std::int64_t slices) {
  ScheduleSpec spec = own;
  spec.name = choice.name;
  spec.csv = choice.csv;
  spec.group = choice.group.value_or(0);
  spec.slices = entry != nullptr && entry->uses_slices ? slices : 1;
  if (entry != nullptr && !entry->overlaps) {
    spec.overlapped.reset();
  }
  const std::string text = write_schedule(spec);
  return setting("schedule", text.front() == '"' ? spec.name : text);
}

/// The same where the scenario cannot be read as it stands.
Settings section_of_unread(const ScheduleEntry* entry, const ScheduleChoice& choice) {
  if (!choice.csv.empty()) {
    return {setting("schedule", "{\"csv\": " + json_string(choice.csv) + "}")};
  }
  Settings settings = {setting("schedule.name", choice.name),
                       setting("schedule.group", std::to_string(choice.group.value_or(0)))};
  if (entry != nullptr && !entry->uses_slices) {
    settings.push_back(setting("schedule.slices", "1"));
  }
  return settings;
}

/// Chunks a rank where the list does not say: the schedule's, or else the scenario's.
std::optional<std::int64_t> implied_chunks(const ScheduleEntry* entry,
                                           const ScheduleChoice& choice,
                                           const Expected<Scenario>& own) {
  if (choice.vpp) {
    return choice.vpp;
  }
  if (entry != nullptr && entry->chunks > 0) {
    return entry->chunks;
  }
  const bool lists = own && !choice.csv.empty();
  return lists ? std::nullopt : own ? std::optional(own->parallelism.vpp) : std::nullopt;
}

/// A split stated layer by layer; the scenario's other forms must not contradict it.
Settings stated_split(const Parallelism& own,
                      const std::vector<std::int64_t>& layers,
                      std::int64_t vpp) {
  Settings settings = {setting("parallelism.layers_per_stage", list_text(layers))};
  if (own.embedding_and_loss_as_layers) {
    settings.push_back(setting("parallelism.embedding_and_loss_as_layers", "false"));
  }
  if (!own.layout.empty()) {
    settings.push_back(setting("parallelism.layout", "\"\""));
  }
  const auto held = [&](std::int64_t rank) {
    std::int64_t sum = 0;
    for (std::int64_t chunk = 0; chunk < vpp; ++chunk) {
      sum += layers[static_cast<std::size_t>(chunk * own.pp + rank)];
    }
    return std::to_string(sum);
  };
  if (own.first_stage_layers) {
    settings.push_back(setting("parallelism.first_stage_layers", held(0)));
  }
  if (own.last_stage_layers) {
    settings.push_back(setting("parallelism.last_stage_layers", held(own.pp - 1)));
  }
  return settings;
}

std::vector<std::int64_t> chunks_to_try(const Scenario& own, const ScheduleEntry& entry) {
  if (entry.chunks > 0) {
    return {entry.chunks};
  }
  const std::int64_t layers = own.model.layers;
  const std::int64_t pp = own.parallelism.pp;
  std::vector<std::int64_t> values;
  for (std::int64_t vpp = 2; pp * vpp <= layers + 2; ++vpp) {
    if (layers % (pp * vpp) == 0 || (layers + 2) % (pp * vpp) == 0 || vpp == own.parallelism.vpp) {
      values.push_back(vpp);
    }
  }
  return values;
}

std::vector<std::int64_t> slices_to_try(const Scenario& own, const ScheduleEntry& entry) {
  return entry.uses_slices && own.schedule.slices == 1 ? std::vector<std::int64_t>{2, 4, 8}
                                                       : std::vector{own.schedule.slices};
}

std::vector<Settings> ways_to_be_best(const Scenario& own,
                                      const ScheduleEntry& entry,
                                      const ScheduleChoice& choice) {
  std::vector<Settings> ways;
  for (const std::int64_t vpp : chunks_to_try(own, entry)) {
    for (const std::int64_t slices : slices_to_try(own, entry)) {
      const Settings common = {section(own.schedule, &entry, choice, slices),
                               setting("parallelism.vpp", std::to_string(vpp))};
      ways.push_back(common);
      for (const auto& layers : stage_lists(own.model.layers, own.parallelism.pp * vpp)) {
        ways.push_back(common);
        const Settings split = stated_split(own.parallelism, layers, vpp);
        ways.back().insert(ways.back().end(), split.begin(), split.end());
      }
    }
  }
  return ways;
}

Diagnostic no_chunks(const Scenario& own, const std::string& name) {
  const std::string layers = std::to_string(own.model.layers);
  return {"/parallelism/vpp",
          "no vpp above 1 shares " + layers + " layers over pp " +
              std::to_string(own.parallelism.pp) + " evenly, as " + name + " needs it",
          "a pp of which a multiple divides " + layers + " or " + layers + " + 2"};
}

}  // namespace

Contestant under_schedule(const std::string& scenario,
                          const Settings& overrides,
                          const ScheduleChoice& choice) {
  const std::string label = choice.best ? choice.name : choice.text;
  Contestant contestant{label, scenario, choice.name, overrides, {}, {}};
  const Expected<Scenario> own = read_scenario(scenario, overrides);
  const ScheduleEntry* const entry = find_schedule(choice.name);
  if (choice.best && own && entry != nullptr) {
    contestant.ways = ways_to_be_best(*own, *entry, choice);
    if (contestant.ways.empty()) {
      contestant.faults.push_back(no_chunks(*own, choice.name));
    }
    return contestant;
  }
  Settings way = own ? Settings{section(own->schedule, entry, choice, own->schedule.slices)}
                     : section_of_unread(entry, choice);
  if (const std::optional<std::int64_t> vpp = implied_chunks(entry, choice, own)) {
    way.push_back(setting("parallelism.vpp", std::to_string(*vpp)));
  }
  contestant.ways.push_back(std::move(way));
  return contestant;
}

}  // namespace foretrain
