#include "tools/collective_verdict.h"

#include "sim/base/format.h"

#include <algorithm>

namespace foretrain {
namespace {

/// A size counts as large where the model spends most of its time on bytes, not on latency.
bool large(const ComparedSize& size) {
  return 2 * size.model.latency.count() < size.model.total().count();
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string size_text(std::int64_t bytes) {
  return with_commas(bytes) + " bytes";
}

std::string degraded_range(const std::vector<const ComparedSize*>& bad) {
  const std::string from = size_text(bad.front()->measured.bytes);
  const std::string to = size_text(bad.back()->measured.bytes);
  return bad.size() == 1 ? "at " + from : "from " + from + " to " + to;
}

std::string small_finding(const std::vector<const ComparedSize*>& bad) {
  double extra = 0.0;
  for (const ComparedSize* size : bad) {
    extra += size->measured.seconds() - seconds(size->model.total());
  }
  const double mean = extra / static_cast<double>(bad.size());
  return "small sizes are late, " + degraded_range(bad) + ", by " +
         human_time(Duration{static_cast<std::int64_t>(mean * 1e12)}) +
         " on average: latency, not bandwidth; look at the host (CPU clocks, NUMA binding, "
         "launches), NCCL_PROTO and NCCL_ALGO, and at the latency between the nodes";
}

/// Bandwidth is missing inside the node.
std::string inside_finding(const CollectiveQuestion& question, const ComparedSize& worst) {
  return "bandwidth is missing inside the node: " + percent(worst.share, 0) + " of the model at " +
         size_text(worst.measured.bytes) + " over " + question.shape.slowest_link_inside +
         "; look for GPUs that talk over PCIe or the host (NCCL_P2P_DISABLE, nvidia-smi topo -m), "
         "an NVLink that is down, fabric manager, or fewer channels (NCCL_MAX_NCHANNELS)";
}

/// Bytes per second out of a node, as the model's algorithm would have sent what was measured.
double leaving(const CollectiveQuestion& question, const ComparedSize& size) {
  const GroupShape& shape = question.shape;
  const auto bytes = static_cast<double>(size.measured.bytes);
  const double rate = bytes / size.measured.seconds();
  const bool tree = size.model.algorithm == "tree" || size.model.algorithm == "nvls_tree";
  if (question.kind == CollectiveKind::kAllReduce && tree) {
    return shape.nodes == 2 ? rate : 2.0 * rate;
  }
  if (question.kind == CollectiveKind::kAllToAll) {
    const auto n = static_cast<double>(shape.size);
    const auto k = static_cast<double>(shape.ranks_per_node);
    return k * rate * (n - k) / n;
  }
  return question.bus(Bytes{size.measured.bytes}, size.measured.seconds());
}

/// Bandwidth is missing between nodes: what leaves a node, in NICs' worth.
std::string across_finding(const CollectiveQuestion& question, const ComparedSize& worst) {
  const GroupShape& shape = question.shape;
  const double lanes = static_cast<double>(shape.ranks_per_node);
  const double line = static_cast<double>(shape.across.bytes_per_second);
  const double efficiency = question.hardware.nic_efficiency;
  const double out = leaving(question, worst);
  const double worth = out / (line * efficiency);
  std::string text = "bandwidth is missing between nodes: " + percent(worst.share, 0) +
                     " of the model at " + size_text(worst.measured.bytes) + " over " +
                     shape.slowest_link_across + "; " + human_rate(out) + " leave a node, " +
                     fixed(worth, 1) + " of " + fixed(lanes, 0) + " NICs' worth";
  text += worth < 1.5 && lanes > 2
              ? "; as if one NIC carried all: look at NCCL_IB_HCA, NCCL_SOCKET_IFNAME and whether "
                "InfiniBand or RoCE is used at all (NCCL_DEBUG=INFO)"
              : "; suspects: a limit per connection (NCCL_IB_QPS_PER_CONNECTION, flows hashed onto "
                "the same uplink), GPUDirect RDMA off (ACS, IOMMU, nvidia-peermem), NICs missing";
  return text + ". To simulate with what was measured set nic_efficiency to " +
         fixed(out / lanes / line, 2) + " in a copy of the topology's file";
}

std::vector<std::string> findings_of(const CollectiveQuestion& question,
                                     const CollectiveVerdict& verdict) {
  std::vector<const ComparedSize*> small;
  std::vector<const ComparedSize*> wide;
  bool any_large = false;
  for (const ComparedSize& size : verdict.sizes) {
    any_large = any_large || large(size);
    if (size.degraded) {
      (large(size) ? wide : small).push_back(&size);
    }
  }
  std::vector<std::string> findings;
  // The largest size speaks for the bandwidth: the others still feel the start-up.
  if (!wide.empty() && verdict.sizes.back().degraded) {
    const ComparedSize& worst = verdict.sizes.back();
    findings.push_back(question.shape.nodes > 1 ? across_finding(question, worst)
                                                : inside_finding(question, worst));
  } else if (!small.empty()) {
    // What the small sizes lose the middle ones lose too, as long as it shows.
    small.insert(small.end(), wide.begin(), wide.end());
  } else if (!wide.empty()) {
    findings.push_back("sizes " + degraded_range(wide) +
                       " are slow though the largest is not: another algorithm or protocol than "
                       "the model's (NCCL_DEBUG=INFO tells), or other traffic at that moment");
  }
  if (!small.empty()) {
    findings.push_back(small_finding(small));
  }
  if (findings.empty()) {
    findings.push_back("healthy: no size below " + percent(kDegradedShare, 0) +
                       " of the model's bandwidth" +
                       (any_large ? "" : "; all sizes are too small to tell of bandwidth"));
  }
  return findings;
}

}  // namespace

CollectiveVerdict compare_with_log(const CollectiveQuestion& question, const NcclTestsLog& log) {
  CollectiveVerdict verdict;
  std::vector<double> shares;
  for (const MeasuredSize& measured : log.sizes) {
    ComparedSize size;
    size.measured = measured;
    size.model = question.cost(Bytes{measured.bytes});
    size.share = seconds(size.model.total()) / measured.seconds();
    size.degraded = size.share < kDegradedShare;
    shares.push_back(size.share);
    verdict.sizes.push_back(size);
  }
  verdict.median_share = median_of(std::move(shares));
  verdict.findings = findings_of(question, verdict);
  verdict.untimed = log.untimed;
  return verdict;
}

std::string scaling_finding(std::vector<NodesAndShare> points) {
  std::erase_if(points, [](const NodesAndShare& point) { return point.nodes < 2; });
  std::stable_sort(
      points.begin(), points.end(), [](const auto& a, const auto& b) { return a.nodes < b.nodes; });
  if (points.size() < 2 || points.front().nodes == points.back().nodes) {
    return "";
  }
  const NodesAndShare& few = points.front();
  const NodesAndShare& many = points.back();
  const std::string range =
      "from " + std::to_string(few.nodes) + " to " + std::to_string(many.nodes) + " nodes";
  // A fabric of full bisection keeps its share; a tenth is within what repeated runs differ by.
  if (many.share > 0.9 * few.share) {
    return "the share of the model's bandwidth holds " + range + ": no sign of oversubscription";
  }
  return "the share of the model's bandwidth falls " + range + ", " + percent(few.share, 0) +
         " to " + percent(many.share, 0) +
         ": congestion above the leaves, as an oversubscription of " +
         fixed(few.share / many.share, 1) +
         " to 1 would give; compare with oversubscription in the topology's file";
}

}  // namespace foretrain
