// How a search is asked otherwise, rule by rule.
#include "sim/search/relax.h"

#include "sim/scenario/divides.h"
#include "sim/search/stages.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::int64_t kMostCount = std::int64_t{1} << 53;  // as a job's sizes may be

std::optional<SearchChange> set(const char* option, std::int64_t value, std::int64_t& target) {
  if (value == target || value < 1 || value > kMostCount) {
    return std::nullopt;
  }
  target = value;
  return SearchChange{option, std::to_string(value)};
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return unit < 1 || unit > kMostCount ? 0 : (value + unit - 1) / unit * unit;
}

}  // namespace

std::optional<SearchChange> share_layers(AskedSearch& asked, const Layout& layout) {
  const std::int64_t layers = asked.job.model.layers;
  const bool uneven = asked.axes.uneven_stages;
  if (!uneven && stages_divide(layers, layout.pp, layout.vpp, true)) {
    asked.axes.uneven_stages = true;
    return SearchChange{"--uneven", ""};
  }
  if (layout.vpp > 1 && stages_divide(layers, layout.pp, 1, uneven)) {
    asked.axes.vpp = {1};
    return SearchChange{"--vpp", "1"};
  }
  return std::nullopt;
}

std::optional<SearchChange> thinner_context(AskedSearch& asked, const Layout& layout) {
  const std::int64_t tokens = asked.job.sequence_length / layout.cp;
  if (tokens < 1) {
    return std::nullopt;
  }
  asked.assumptions.minimum_cp_tokens = static_cast<double>(tokens);
  return SearchChange{"--assume", "minimum_cp_tokens=" + std::to_string(tokens)};
}

// A multiple that any dp of these GPUs divides.
std::optional<SearchChange> divisible_batch(AskedSearch& asked, const Layout& layout) {
  const std::int64_t unit = asked.job.gpus * layout.micro_batch_size;
  return set("--gbs", rounded_up(asked.job.global_batch_size, unit), asked.job.global_batch_size);
}

std::optional<SearchChange> divisible_sequence(AskedSearch& asked, const Layout& layout) {
  const std::int64_t length = rounded_up(asked.job.sequence_length, 2 * layout.tp * layout.cp);
  const bool legal = positions_suffice(asked.job.model, length) &&
                     largest_operator_flops(asked.job.model, length, 1) <= kMostOperatorFlops;
  return legal ? set("--seq", length, asked.job.sequence_length) : std::nullopt;
}

// A batch of common size, which any dp of these GPUs divides: the largest legal takes long to run.
std::optional<SearchChange> fewer_micro_batches(AskedSearch& asked, const Layout& layout) {
  constexpr std::int64_t kCommon = 16;  // micro-batches of a GPU
  const std::int64_t unit = asked.job.gpus * layout.micro_batch_size;
  const bool legal = unit <= kMostMicroBatches / kCommon;
  return set("--gbs", legal ? kCommon * unit : unit, asked.job.global_batch_size);
}

std::optional<SearchChange> run_chunks(AskedSearch& asked, const Layout& /*layout*/) {
  asked.axes.schedules = {"interleaved"};
  return SearchChange{"--schedules", "interleaved"};
}

std::optional<SearchChange> one_chunk(AskedSearch& asked, const Layout& /*layout*/) {
  asked.axes.schedules = {"1f1b"};
  asked.axes.vpp = {1};
  return SearchChange{"--schedules", "1f1b"};
}

std::optional<SearchChange> recompute_as_needed(AskedSearch& asked, const Layout& /*layout*/) {
  asked.axes.recompute_layers = {kRecomputeAsNeeded};
  return SearchChange{"--recompute", "as_needed"};
}

}  // namespace foretrain
