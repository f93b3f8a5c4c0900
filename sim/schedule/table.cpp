#include "sim/base/edit_distance.h"
#include "sim/schedule/generators.h"
#include "sim/schedule/lists.h"

#include <algorithm>
#include <array>

namespace foretrain {
namespace {

constexpr std::array kTable = {
    ScheduleEntry{.name = "gpipe",
                  .summary = "all forwards, then all backwards; every micro-batch in flight",
                  .placement = Placement::kLinear,
                  .generate = &gpipe_lists},
    ScheduleEntry{
        .name = "1f1b",
        .summary = "one forward, one backward in turn; at most pp micro-batches in flight",
        .placement = Placement::kLinear,
        .generate = &one_f_one_b_lists},
    ScheduleEntry{.name = "eager-1f1b",
                  .summary = "1f1b with twice the window: hides p2p latency, 2 pp - 1 in flight",
                  .placement = Placement::kLinear,
                  .generate = &eager_one_f_one_b_lists},
    ScheduleEntry{.name = "1f1b-overlap",
                  .summary = "eager 1f1b whose forward and backward run as one overlapped unit",
                  .placement = Placement::kLinear,
                  .overlaps = true,
                  .generate = &overlapped_one_f_one_b_lists},
    ScheduleEntry{
        .name = "interleaved",
        .summary = "1f1b over vpp chunks a rank; the bubble shrinks by vpp (Megatron-LM's order)",
        .placement = Placement::kLoop,
        .chunks = 0,
        .uses_group = true,
        .illegal = &interleaved_illegal,
        .generate = &interleaved_lists},
    ScheduleEntry{.name = "interleaved-pytorch",
                  .summary = "interleaved in equal rounds of pp or more micro-batches; also m < pp",
                  .placement = Placement::kLoop,
                  .chunks = 0,
                  .illegal = &pytorch_interleaved_illegal,
                  .generate = &pytorch_interleaved_lists},
    ScheduleEntry{.name = "interleaved-overlap",
                  .summary = "interleaved whose forward and backward run as one overlapped unit",
                  .placement = Placement::kLoop,
                  .chunks = 0,
                  .uses_group = true,
                  .overlaps = true,
                  .illegal = &overlapped_interleaved_illegal,
                  .generate = &overlapped_interleaved_lists},
    ScheduleEntry{.name = "looped-bfs",
                  .summary = "gpipe chunk by chunk: weights are needed once a chunk and direction",
                  .placement = Placement::kLoop,
                  .chunks = 0,
                  .generate = &looped_bfs_lists},
    ScheduleEntry{.name = "zb-h1",
                  .summary = "1f1b with split backwards: weight gradients fill part of the bubble",
                  .placement = Placement::kLinear,
                  .splits_backward = true,
                  .generate = &zb_h1_lists},
    ScheduleEntry{.name = "zb-h2",
                  .summary = "zb-h1 with twice the window: no bubble but skew, 2 pp - 1 in flight",
                  .placement = Placement::kLinear,
                  .splits_backward = true,
                  .generate = &zb_h2_lists},
    ScheduleEntry{.name = "zb-interleaved",
                  .summary = "zb-h1 over vpp chunks a rank (PyTorch's InterleavedZeroBubble)",
                  .placement = Placement::kLoop,
                  .chunks = 0,
                  .splits_backward = true,
                  .illegal = &zb_interleaved_illegal,
                  .generate = &zb_interleaved_lists},
    ScheduleEntry{.name = "zb-v",
                  .summary = "zero bubble on two chunks folded into a V; memory of 1f1b",
                  .placement = Placement::kV,
                  .chunks = 2,
                  .splits_backward = true,
                  .generate = &zb_v_lists},
    ScheduleEntry{.name = "v-half",
                  .summary = "a V with about half of the memory of 1f1b, for a larger bubble",
                  .placement = Placement::kV,
                  .chunks = 2,
                  .splits_backward = true,
                  .generate = &v_half_lists},
    ScheduleEntry{.name = "v-min",
                  .summary = "a V with about a third of the memory of 1f1b",
                  .placement = Placement::kV,
                  .chunks = 2,
                  .splits_backward = true,
                  .generate = &v_min_lists},
    ScheduleEntry{.name = "dualpipe",
                  .summary = "two model copies from both ends; forwards overlap with backwards",
                  .placement = Placement::kBidirectional,
                  .splits_backward = true,
                  .overlaps = true,
                  .illegal = &dualpipe_illegal,
                  .generate = &dualpipe_lists},
    ScheduleEntry{.name = "dualpipev",
                  .summary = "dualpipe folded into a V: one model copy on half of the ranks",
                  .placement = Placement::kV,
                  .chunks = 2,
                  .splits_backward = true,
                  .overlaps = true,
                  .illegal = &dualpipev_illegal,
                  .generate = &dualpipev_lists},
    ScheduleEntry{.name = "seq1f1b",
                  .summary = "1f1b over slices of the sequence; the bubble shrinks by slices",
                  .placement = Placement::kLinear,
                  .uses_slices = true,
                  .illegal = &seq1f1b_illegal,
                  .generate = &seq1f1b_lists},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kTable.size()> names;
  std::transform(kTable.begin(), kTable.end(), names.begin(), [](const ScheduleEntry& entry) {
    return entry.name;
  });
  return names;
}();

Diagnostic unknown_name(std::string_view name) {
  const std::vector<std::string> all(kNames.begin(), kNames.end());
  std::string hint = did_you_mean(name, all);
  if (hint.empty()) {
    for (const std::string& known : all) {
      hint += (hint.empty() ? "names: " : ", ") + known;
    }
  }
  return {"/schedule", "unknown schedule \"" + std::string(name) + "\"", hint};
}

void check_positive(std::int32_t value, const char* what, std::vector<Diagnostic>& faults) {
  if (value < 1) {
    faults.push_back({"/schedule",
                      std::string(what) + " is " + std::to_string(value) + ", must be at least 1",
                      ""});
  }
}

void check_chunks(const ScheduleEntry& entry, std::int32_t vpp, std::vector<Diagnostic>& faults) {
  const std::string name(entry.name);
  if (entry.chunks == 1 && vpp > 1) {
    faults.push_back({"/schedule",
                      name + " runs one chunk a rank, vpp is " + std::to_string(vpp),
                      "set vpp to 1, or take interleaved, which runs vpp chunks a rank"});
  } else if (entry.chunks == 2 && vpp != 2) {
    faults.push_back({"/schedule",
                      name + " folds 2 chunks onto each rank, vpp is " + std::to_string(vpp),
                      "leave vpp out, or set it to 2"});
  }
}

/// Passes over each chunk and micro-batch: F and B, or F, I and W.
std::int64_t passes_of(const ScheduleEntry& entry) {
  return entry.splits_backward ? 3 : 2;
}

std::vector<Diagnostic> size_faults(const ScheduleEntry& entry, const ScheduleSize& size) {
  std::vector<Diagnostic> faults;
  const std::string name(entry.name);
  check_positive(size.pp, "pp", faults);
  check_positive(size.micro_batches, "micro-batches", faults);
  check_positive(size.vpp, "vpp", faults);
  check_positive(size.slices, "slices", faults);
  if (size.group < 0) {
    faults.push_back({"/schedule", "group is negative: " + std::to_string(size.group), ""});
  }
  check_chunks(entry, size.vpp, faults);
  if (size.group > 0 && !entry.uses_group) {
    faults.push_back({"/schedule",
                      name + " has no micro-batch groups, group is " + std::to_string(size.group),
                      "leave group out, or take interleaved"});
  }
  if (size.slices != 1 && !entry.uses_slices) {
    faults.push_back(
        {"/schedule",
         name + " does not cut micro-batches into slices, slices is " + std::to_string(size.slices),
         "leave slices out, or take seq1f1b"});
  }
  if (!faults.empty()) {
    return faults;
  }
  const Int128 actions =
      Int128{passes_of(entry)} * size.pp * size.micro_batches * size.vpp * size.slices;
  if (actions > kMostActions) {
    faults.push_back({"/schedule",
                      "too large to build: pp " + std::to_string(size.pp) + " x " +
                          std::to_string(size.micro_batches) + " micro-batches x vpp " +
                          std::to_string(size.vpp) +
                          (size.slices > 1 ? " x " + std::to_string(size.slices) + " slices" : "") +
                          " x " + std::to_string(passes_of(entry)) + " passes are more than " +
                          std::to_string(kMostActions) + " actions",
                      "lower one of them"});
  } else if (entry.illegal != nullptr) {
    if (std::optional<Diagnostic> fault = entry.illegal(size)) {
      faults.push_back(*std::move(fault));
    }
  }
  return faults;
}

}  // namespace

std::span<const ScheduleEntry> schedule_table() {
  return kTable;
}

std::span<const std::string_view> schedule_names() {
  return kNames;
}

const ScheduleEntry* find_schedule(std::string_view name) {
  const auto* const found = std::find_if(
      kTable.begin(), kTable.end(), [&](const ScheduleEntry& entry) { return entry.name == name; });
  return found == kTable.end() ? nullptr : found;
}

Expected<Schedule> make_schedule(std::string_view name, const ScheduleSize& size) {
  const ScheduleEntry* const entry = find_schedule(name);
  if (entry == nullptr) {
    return refuse(unknown_name(name));
  }
  std::vector<Diagnostic> faults = size_faults(*entry, size);
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return Schedule{std::string(name), size, entry->placement, entry->generate(size)};
}

}  // namespace foretrain
