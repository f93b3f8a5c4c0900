#include "foretrain/mesh.h"
#include "sim/base/check.h"
#include "sim/mesh/mesh_faults.h"

#include <algorithm>
#include <string>

namespace foretrain {
namespace {

/// Position of one rank of a pipeline stage among its experts' dimensions.
struct ExpertStrides {
  std::int64_t etp = 1, ep = 1, edp = 1;
  std::int64_t edp_size = 1;
};

/// Megatron-LM's expert generator: the order's words with tp read as etp, dp as edp and cp gone,
/// over the ranks of one stage. A word left out stands where the default order has it.
ExpertStrides expert_strides(const MeshSize& size) {
  ExpertStrides strides;
  strides.edp_size = size.tp * size.cp * size.dp / (size.etp * size.ep);
  std::vector<std::string> words = split_order(size.order);
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!has("tp")) {
    words.insert(words.begin(), "tp");
  }
  if (!has("dp")) {
    words.emplace_back("dp");
  }
  std::int64_t stride = 1;
  for (const std::string& word : words) {
    if (word == "tp") {
      strides.etp = stride;
      stride *= size.etp;
    } else if (word == "ep") {
      strides.ep = stride;
      stride *= size.ep;
    } else if (word == "dp") {
      strides.edp = stride;
      stride *= strides.edp_size;
    }
  }
  return strides;
}

/// Lines of a one-dimensional layout: `count` points, lines of `size` points `stride` apart.
std::vector<ProcessGroup> lines(const std::vector<std::int64_t>& points,
                                std::int64_t size,
                                std::int64_t stride) {
  std::vector<ProcessGroup> groups;
  const auto count = static_cast<std::int64_t>(points.size());
  for (std::int64_t at = 0; at < count; ++at) {
    if ((at / stride) % size != 0) {
      continue;
    }
    ProcessGroup group;
    for (std::int64_t step = 0; step < size; ++step) {
      group.ranks.push_back(points[static_cast<std::size_t>(at + step * stride)]);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

void sort_by_first_rank(std::vector<ProcessGroup>& groups) {
  std::sort(groups.begin(), groups.end(), [](const ProcessGroup& a, const ProcessGroup& b) {
    return a.ranks.front() < b.ranks.front();
  });
}

}  // namespace

Expected<DeviceMesh> DeviceMesh::build(const MeshSize& size) {
  std::vector<Diagnostic> faults = mesh_faults(size);
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  DeviceMesh mesh;
  mesh.size_ = size;
  std::int64_t stride = 1;
  for (const std::string& word : split_order(size.order)) {
    if (word == "tp") {
      mesh.stride_tp_ = stride;
      stride *= size.tp;
    } else if (word == "cp") {
      mesh.stride_cp_ = stride;
      stride *= size.cp;
    } else if (word == "dp") {
      mesh.stride_dp_ = stride;
      stride *= size.dp;
    } else if (word == "pp") {
      mesh.stride_pp_ = stride;
      stride *= size.pp;
    }
  }
  return mesh;
}

std::int64_t DeviceMesh::ranks() const {
  return size_.tp * size_.cp * size_.dp * size_.pp;
}

Coordinates DeviceMesh::coordinates(std::int64_t rank) const {
  FORETRAIN_CHECK(rank >= 0 && rank < ranks(), "rank %lld", static_cast<long long>(rank));
  return {rank / stride_tp_ % size_.tp,
          rank / stride_cp_ % size_.cp,
          rank / stride_dp_ % size_.dp,
          rank / stride_pp_ % size_.pp};
}

std::int64_t DeviceMesh::rank(const Coordinates& at) const {
  return at.tp * stride_tp_ + at.cp * stride_cp_ + at.dp * stride_dp_ + at.pp * stride_pp_;
}

std::vector<ProcessGroup> DeviceMesh::groups(std::string_view dimension) const {
  if (dimension == "ep" || dimension == "edp" || dimension == "etp") {
    return expert_groups(dimension);
  }
  const bool model = dimension == "model";
  const bool both = dimension == "dp-cp";
  const bool tp = model || dimension == "tp";
  const bool cp = model || both || dimension == "cp";
  const bool dp = both || dimension == "dp";
  const bool pp = model || dimension == "pp";
  FORETRAIN_CHECK(tp || cp || dp || pp, "unknown dimension %s", std::string(dimension).c_str());
  const std::int64_t members =
      (tp ? size_.tp : 1) * (cp ? size_.cp : 1) * (dp ? size_.dp : 1) * (pp ? size_.pp : 1);
  // Ranks ascend, so a group's first rank comes before its others and opens the group.
  std::vector<ProcessGroup> groups;
  std::vector<std::int64_t> group_of(static_cast<std::size_t>(ranks()), -1);
  for (std::int64_t rank_at = 0; rank_at < ranks(); ++rank_at) {
    const Coordinates at = coordinates(rank_at);
    const std::int64_t first =
        rank({tp ? 0 : at.tp, cp ? 0 : at.cp, dp ? 0 : at.dp, pp ? 0 : at.pp});
    std::int64_t& group = group_of[static_cast<std::size_t>(first)];
    if (group < 0) {
      group = static_cast<std::int64_t>(groups.size());
      groups.emplace_back().ranks.reserve(static_cast<std::size_t>(members));
    }
    groups[static_cast<std::size_t>(group)].ranks.push_back(rank_at);
  }
  return groups;
}

std::vector<ProcessGroup> DeviceMesh::expert_groups(std::string_view dimension) const {
  const ExpertStrides strides = expert_strides(size_);
  std::vector<std::vector<std::int64_t>> stages(static_cast<std::size_t>(size_.pp));
  for (std::int64_t rank_at = 0; rank_at < ranks(); ++rank_at) {
    stages[static_cast<std::size_t>(coordinates(rank_at).pp)].push_back(rank_at);
  }
  std::vector<ProcessGroup> groups;
  for (const std::vector<std::int64_t>& stage : stages) {
    std::vector<ProcessGroup> found = dimension == "ep" ? lines(stage, size_.ep, strides.ep)
                                      : dimension == "etp"
                                          ? lines(stage, size_.etp, strides.etp)
                                          : lines(stage, strides.edp_size, strides.edp);
    groups.insert(
        groups.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  sort_by_first_rank(groups);
  return groups;
}

bool DeviceMesh::inside_node(std::string_view dimension) const {
  for (const ProcessGroup& group : groups(dimension)) {
    const std::int64_t node = group.ranks.front() / size_.gpus_per_node;
    for (const std::int64_t member : group.ranks) {
      if (member / size_.gpus_per_node != node) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace foretrain
