#include "foretrain/schedule.h"
#include "sim/scenario/layout.h"
#include "sim/scenario/rules.h"

#include <algorithm>

namespace foretrain {
namespace {

void check_chunks(Scenario& scenario,
                  const ScheduleEntry& entry,
                  const StatedValues& stated,
                  Rules& rules) {
  const std::string name(entry.name);
  std::int64_t& vpp = scenario.parallelism.vpp;
  if (entry.chunks == 2 && stated.vpp && vpp != 2) {
    rules.taint("/parallelism/vpp");
    rules.fault("/schedule",
                name + " folds 2 chunks onto each rank, vpp is " + std::to_string(vpp),
                "leave vpp out, or set it to 2");
  } else if (entry.chunks == 1 && vpp > 1) {
    rules.taint("/parallelism/vpp");
    rules.fault("/schedule",
                name + " runs one chunk a rank, vpp is " + std::to_string(vpp),
                "set vpp to 1, or take interleaved, which runs vpp chunks a rank");
  }
  if (entry.chunks == 2) {
    vpp = 2;
  }
}

/// Keys that shape some schedules only.
void check_shape(const ScheduleSpec& spec, const ScheduleEntry& entry, Rules& rules) {
  const std::string name(entry.name);
  if (spec.group > 0 && !entry.uses_group) {
    rules.fault("/schedule",
                name + " has no micro-batch groups, group is " + std::to_string(spec.group),
                "leave group out, or take interleaved");
  }
  if (spec.slices > 1 && !entry.uses_slices) {
    rules.fault(
        "/schedule",
        name + " does not cut micro-batches into slices, slices is " + std::to_string(spec.slices),
        "leave slices out, or take seq1f1b");
  }
  if (spec.overlapped && spec.overlap_semantics == "sequential") {
    rules.fault("/schedule/overlapped",
                "sequential units take the time of their forward and backward",
                "leave it out, or set overlap_semantics to \"atomic\"");
  }
  if (!entry.overlaps && spec.overlapped) {
    rules.fault("/schedule/overlapped",
                name + " has no overlapped units that could take this time",
                "leave it out, or take dualpipe, dualpipev, 1f1b-overlap or interleaved-overlap");
  }
}

/// The divisors of `tokens` next to `slices`: "2 or 4".
std::string nearest_slices(std::int64_t tokens, std::int64_t slices) {
  std::int64_t fewer = std::min(slices, tokens);
  while (tokens % fewer != 0) {
    --fewer;
  }
  std::int64_t more = slices;
  while (more < tokens && tokens % more != 0) {
    ++more;
  }
  return std::to_string(fewer) + (more < tokens ? " or " + std::to_string(more) : "") + " slices";
}

/// Every slice has as many tokens, and tensor-parallel ranks share them.
void check_slices(const Scenario& scenario, Rules& rules) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t slices = scenario.schedule.slices;
  if (slices == 1 || !rules.sound({"/training/sequence_length", "/parallelism/tp"})) {
    return;
  }
  const bool shared = p.sequence_parallel && p.tp > 1 && p.tp <= 65536;
  const std::int64_t parts = slices * (shared ? p.tp : 1);
  const std::int64_t tokens = scenario.training.sequence_length;
  if (tokens % parts != 0) {
    rules.fault("/schedule/slices",
                std::to_string(slices) + " slices" +
                    (shared ? " x tp " + std::to_string(p.tp) + " (sequence parallelism)" : "") +
                    " do not divide " + std::to_string(tokens) + " tokens",
                nearest_slices(std::max<std::int64_t>(1, tokens / (parts / slices)), slices));
  }
}

/// Measured phases must hold those that the schedule runs.
void check_stated(const Scenario& scenario, bool splits, Rules& rules) {
  const std::optional<StatedCosts>& stated = scenario.costs.stated;
  if (stated && stated->overlapped && scenario.schedule.overlapped) {
    rules.fault("/schedule/overlapped",
                "/costs/overlapped states the time of an overlapped unit too",
                "give one of them");
  }
  if (stated && splits && !(stated->dgrad && stated->wgrad)) {
    rules.fault(stated->dgrad ? "/costs/wgrad" : "/costs/dgrad",
                "needed: " + scenario.schedule.name + " splits the backward",
                "the time of one chunk's input gradient (dgrad) and weight gradient (wgrad)");
  }
}

bool splits_backward(const Schedule& lists) {
  return std::any_of(lists.ranks.begin(), lists.ranks.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](const Action& action) {
      return action.kind == ActionKind::kWeightGradient;
    });
  });
}

/// The user's own lists fix pp, vpp and the number of micro-batches.
void check_lists(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  const ScheduleSize& size = scenario.schedule.lists->size;
  Parallelism& p = scenario.parallelism;
  const auto compare = [&](std::int64_t value, std::int64_t held, const char* what) {
    if (value != held) {
      rules.fault("/schedule/csv",
                  "the lists are for " + std::to_string(held) + " " + what + ", the scenario has " +
                      std::to_string(value),
                  "");
    }
  };
  if (!stated.vpp) {
    p.vpp = size.vpp;
  }
  compare(p.pp, size.pp, "pipeline ranks");
  compare(p.vpp, size.vpp, "chunks a rank");
  if (rules.sound(
          {"/training/global_batch_size", "/training/micro_batch_size", "/parallelism/dp"})) {
    compare(scenario.micro_batches(), size.micro_batches, "micro-batches");
  }
  if (scenario.schedule.group > 0 || scenario.schedule.slices > 1) {
    rules.fault("/schedule", "lists from a file have their groups and slices", "leave both out");
  }
  check_stated(scenario, splits_backward(*scenario.schedule.lists), rules);
  scenario.schedule.slices = size.slices;
  check_slices(scenario, rules);
  scenario.schedule.copies = scenario.schedule.lists->copies();
}

ScheduleSize size_of(const Scenario& scenario) {
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(scenario.parallelism.pp);
  size.vpp = static_cast<std::int32_t>(scenario.parallelism.vpp);
  size.micro_batches = static_cast<std::int32_t>(scenario.micro_batches());
  size.group = static_cast<std::int32_t>(scenario.schedule.group);
  size.slices = static_cast<std::int32_t>(scenario.schedule.slices);
  return size;
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

Expected<Schedule> schedule_of(const Scenario& scenario) {
  return scenario.schedule.lists ? Expected<Schedule>(*scenario.schedule.lists)
                                 : make_schedule(scenario.schedule.name, size_of(scenario));
}

void check_schedule(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  if (!rules.sound({"/schedule", "/parallelism/vpp"})) {
    return;
  }
  derive_chunks(scenario.parallelism, stated);
  if (scenario.schedule.lists) {
    check_lists(scenario, stated, rules);
    return;
  }
  const ScheduleEntry* const entry = find_schedule(scenario.schedule.name);
  if (entry == nullptr) {
    return;
  }
  check_chunks(scenario, *entry, stated, rules);
  check_shape(scenario.schedule, *entry, rules);
  check_stated(scenario, entry->splits_backward, rules);
  check_slices(scenario, rules);
  scenario.schedule.copies = copies_of(entry->placement);
  if (entry->illegal == nullptr || !rules.sound({"/schedule",
                                                 "/parallelism/dp",
                                                 "/parallelism/pp",
                                                 "/parallelism/micro_batches",
                                                 "/training/global_batch_size",
                                                 "/training/micro_batch_size"})) {
    return;
  }
  constexpr std::int64_t kMost = 65536;
  if (scenario.parallelism.pp > kMost || scenario.parallelism.vpp > kMost) {
    return;  // the split of layers refuses it
  }
  if (const std::optional<Diagnostic> fault = entry->illegal(size_of(scenario))) {
    rules.fault("/schedule", fault->message, fault->hint);
  }
}

/// Closed forms hold exactly only where what runs beside a kernel costs it nothing.
void check_contention(const Scenario& scenario, const StatedValues& stated, Rules& rules) {
  if (scenario.costs.constant && stated.modelled_contention) {
    rules.fault("/overlap/contention",
                "constant costs know nothing of what transfers take from kernels beside them",
                "\"none\", a factor such as 1.2, or calibrated costs");
  }
}

}  // namespace foretrain
