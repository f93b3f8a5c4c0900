#include "sim/lower/buckets.h"

#include <algorithm>

namespace foretrain {
namespace {

void cut(std::vector<Bucket>& buckets,
         const std::vector<RankParameters>& parts,
         Bucket open,
         std::int64_t wanted) {
  const Bucket empty = open;
  bool is_open = false;
  for (auto part = static_cast<std::int32_t>(parts.size()) - 1; part >= 0; --part) {
    const RankParameters& held = parts[static_cast<std::size_t>(part)];
    if (!is_open) {
      open = empty;
      open.last_part = part;
      is_open = true;
    }
    open.first_part = part;
    open.parameters += empty.experts ? held.experts : held.shared;
    if (open.parameters >= wanted || part == 0) {
      if (open.parameters > 0) {
        buckets.push_back(open);
      }
      is_open = false;
    }
  }
}

}  // namespace

std::vector<Bucket> gradient_buckets(const Scenario& scenario,
                                     const std::vector<RankParameters>& parts,
                                     std::int32_t stage) {
  const std::int64_t element = bytes_per_element(scenario.training.dtype.grads);
  const std::int64_t megatron =
      std::max<std::int64_t>(40'000'000, 1'000'000 * scenario.parallelism.dp);
  const std::int64_t wanted = scenario.parallelism.bucket_bytes > 0
                                  ? scenario.parallelism.bucket_bytes / element
                                  : megatron;
  std::vector<Bucket> buckets;
  for (const bool experts : {false, true}) {
    Bucket bucket;
    bucket.stage = stage;
    bucket.experts = experts;
    cut(buckets, parts, bucket, wanted);
  }
  std::stable_sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return a.first_part > b.first_part;
  });
  return buckets;
}

}  // namespace foretrain
