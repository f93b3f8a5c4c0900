#include "sim/lower/buckets.h"

#include <algorithm>

namespace foretrain {

std::vector<std::int64_t> part_parameters(const Scenario& scenario, const StageSlice& slice) {
  const std::int64_t tp = scenario.parallelism.tp;
  std::vector<std::int64_t> parameters;
  if (slice.embedding) {
    parameters.push_back(block_parameters(scenario.model, BlockKind::kEmbedding, tp));
  }
  const std::int64_t layer = block_parameters(scenario.model, BlockKind::kDense, tp);
  parameters.insert(parameters.end(), static_cast<std::size_t>(slice.layers), layer);
  if (slice.head) {
    std::int64_t head = block_parameters(scenario.model, BlockKind::kHead, tp);
    // A tied head shares the table of the first stage; only a pipeline gives it a copy of its own.
    if (scenario.model.tied_embeddings && !slice.embedding) {
      head += scenario.model.vocabulary * scenario.model.hidden / tp;
    }
    parameters.push_back(head);
  }
  return parameters;
}

std::vector<Bucket> gradient_buckets(const Scenario& scenario,
                                     const StageSlice& slice,
                                     std::int32_t stage) {
  const std::vector<std::int64_t> parameters = part_parameters(scenario, slice);
  const std::int64_t element = bytes_per_element(scenario.training.dtype.grads);
  const std::int64_t megatron =
      std::max<std::int64_t>(40'000'000, 1'000'000 * scenario.parallelism.dp);
  const std::int64_t wanted = scenario.parallelism.bucket_bytes > 0
                                  ? scenario.parallelism.bucket_bytes / element
                                  : megatron;
  std::vector<Bucket> buckets;
  Bucket open;
  bool is_open = false;
  for (auto part = static_cast<std::int32_t>(parameters.size()) - 1; part >= 0; --part) {
    if (!is_open) {
      open = {stage, part, part, 0};
      is_open = true;
    }
    open.first_part = part;
    open.parameters += parameters[static_cast<std::size_t>(part)];
    if (open.parameters >= wanted || part == 0) {
      buckets.push_back(open);
      is_open = false;
    }
  }
  return buckets;
}

}  // namespace foretrain
