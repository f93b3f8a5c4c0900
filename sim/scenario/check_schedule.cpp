#include "foretrain/schedule.h"
#include "sim/scenario/layout.h"
#include "sim/scenario/rules.h"

#include <algorithm>

namespace foretrain {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const ScheduleEntry* find_entry(std::string_view name) {
  const std::span<const ScheduleEntry> table = schedule_table();
  const auto found = std::find_if(
      table.begin(), table.end(), [&](const ScheduleEntry& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

/// These fold two chunks onto each rank, a V.
bool implies_two_chunks(std::string_view name) {
  return is_one_of(name, {"zb-v", "v-half", "v-min", "dualpipev"});
}

/// Whether a schedule, built or not, runs any number of chunks per rank.
bool runs_chunks(std::string_view name) {
  const ScheduleEntry* entry = find_entry(name);
  return entry != nullptr ? entry->uses_vpp
                          : is_one_of(name,
                                      {"csv",
                                       "interleaved",
                                       "interleaved-pytorch",
                                       "interleaved-overlap",
                                       "looped-bfs",
                                       "zb-interleaved"});
}

bool runs_groups(std::string_view name) {
  const ScheduleEntry* entry = find_entry(name);
  return entry != nullptr ? entry->uses_group
                          : is_one_of(name, {"interleaved", "interleaved-overlap"});
}

void check_chunks(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  const std::string& name = scenario.schedule.name;
  std::int64_t& vpp = scenario.parallelism.vpp;
  const bool vpp_fault =
      implies_two_chunks(name) ? stated.vpp && vpp != 2 : vpp > 1 && !runs_chunks(name);
  if (vpp_fault) {
    rules.taint("/parallelism/vpp");
  }
  if (implies_two_chunks(name)) {
    if (stated.vpp && vpp != 2) {
      rules.fault("/schedule",
                  name + " folds 2 chunks onto each rank, vpp is " + std::to_string(vpp),
                  "leave vpp out, or set it to 2");
    }
    vpp = 2;
  } else if (vpp > 1 && !runs_chunks(name)) {
    rules.fault("/schedule",
                name + " runs one chunk a rank, vpp is " + std::to_string(vpp),
                "set vpp to 1, or take interleaved, which runs vpp chunks a rank");
  }
  if (scenario.schedule.group > 0 && !runs_groups(name)) {
    rules.fault(
        "/schedule",
        name + " has no micro-batch groups, group is " + std::to_string(scenario.schedule.group),
        "leave group out, or take interleaved");
  }
}

/// The sizes DualPipe and its V form can run (DeepSeek-AI's DualPipe), until the table has them.
void check_dualpipe(const Scenario& scenario, Rules& rules) {
  const std::string& name = scenario.schedule.name;
  const std::int64_t pp = scenario.parallelism.pp;
  const std::int64_t count = scenario.micro_batches();
  const bool both_ways = name == "dualpipe";
  if (both_ways && (pp % 2 != 0 || count % 2 != 0)) {
    rules.fault("/schedule",
                "dualpipe needs even pp and an even number of micro-batches, has pp " +
                    std::to_string(pp) + " and " + std::to_string(count),
                "");
  } else if (count < 2 * pp) {
    rules.fault("/schedule",
                name + " needs " + std::to_string(2 * pp) + " micro-batches or more, has " +
                    std::to_string(count),
                "raise global_batch_size, or lower pp");
  }
}

/// A layout says how many virtual stages there are, and so how many chunks a rank holds.
void derive_chunks(Parallelism& parallelism, const StatedValues& stated) {
  if (parallelism.layout.empty() || stated.vpp) {
    return;
  }
  if (const Expected<std::vector<LayoutStage>> stages = parse_layout(parallelism.layout)) {
    const auto count = static_cast<std::int64_t>(stages->size());
    parallelism.vpp = count % parallelism.pp == 0 ? count / parallelism.pp : 1;
  }
}

}  // namespace

void check_schedule(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  if (!rules.sound({"/schedule", "/parallelism/vpp"})) {
    return;
  }
  derive_chunks(scenario.parallelism, stated);
  check_chunks(scenario, stated, rules);
  const ScheduleEntry* entry = find_entry(scenario.schedule.name);
  const bool dualpipe =
      entry == nullptr && is_one_of(scenario.schedule.name, {"dualpipe", "dualpipev"});
  const bool ruled = dualpipe || (entry != nullptr && entry->illegal != nullptr);
  if (!ruled || !rules.sound({"/schedule",
                              "/parallelism/dp",
                              "/parallelism/pp",
                              "/parallelism/micro_batches",
                              "/training/global_batch_size",
                              "/training/micro_batch_size"})) {
    return;
  }
  constexpr std::int64_t kMost = 65536;
  const Parallelism& p = scenario.parallelism;
  if (p.pp > kMost || p.vpp > kMost) {
    return;  // the split of layers refuses it
  }
  if (dualpipe) {
    check_dualpipe(scenario, rules);
    return;
  }
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(p.pp);
  size.vpp = static_cast<std::int32_t>(p.vpp);
  size.micro_batches = static_cast<std::int32_t>(scenario.micro_batches());
  size.group = static_cast<std::int32_t>(scenario.schedule.group);
  if (const std::optional<Diagnostic> fault = entry->illegal(size)) {
    rules.fault("/schedule", fault->message, fault->hint);
  }
}

}  // namespace foretrain
