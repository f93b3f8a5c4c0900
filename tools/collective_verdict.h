#pragma once

#include "tools/collective_question.h"
#include "tools/nccl_tests_log.h"

#include <string>
#include <vector>

namespace foretrain {

/// Below this share of the model's bandwidth a measured size is called degraded.
constexpr double kDegradedShare = 0.6;

/// One measured size beside the model's.
struct ComparedSize {
  MeasuredSize measured;
  CollectiveCost model;
  double share = 0.0;  ///< measured bandwidth over the model's
  bool degraded = false;
};

/// One log against the model, and what it looks like when it is bad.
struct CollectiveVerdict {
  std::vector<ComparedSize> sizes;
  double median_share = 0.0;
  std::vector<std::string> findings;  ///< sentences; never empty
  std::vector<std::int64_t> untimed;  ///< sizes of the log without a time
};

CollectiveVerdict compare_with_log(const CollectiveQuestion& question, const NcclTestsLog& log);

/// How a fabric holds up as nodes are added: the share of the model's bandwidth at the largest
/// size of each log, by nodes. Returns "" when there is nothing to say.
struct NodesAndShare {
  std::int64_t nodes = 0;
  double share = 0.0;
};
std::string scaling_finding(std::vector<NodesAndShare> points);

}  // namespace foretrain
