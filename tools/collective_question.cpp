#include "tools/collective_question.h"

#include "tools/rank_list.h"

#include "foretrain/quantity.h"
#include "foretrain/scenario.h"
#include "sim/base/edit_distance.h"
#include "sim/base/format.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace foretrain {
namespace {

constexpr std::int64_t kMostGpus = std::int64_t{1} << 17;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,
                                     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast,
                                     CollectiveKind::kSendReceive};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

/// A list as typed, its faults at `pointer`; ranks beyond any cluster are faults of their own.
Expected<std::vector<std::int64_t>> ranks_of(const std::string& text,
                                             std::int64_t gpus,
                                             const std::string& option) {
  Expected<std::vector<std::int64_t>> ranks = parse_rank_list(text, gpus, "--" + option);
  if (!ranks) {
    for (Diagnostic& fault : ranks.error().list) {
      fault.pointer = "/" + option;
    }
  }
  return ranks;
}

/// The given count, or the whole nodes that hold the highest rank named.
std::int64_t gpus_for(const CollectiveWords& words,
                      const std::vector<std::vector<std::int64_t>>& groups,
                      const TopologySpec& spec) {
  if (words.gpus != 0) {
    return words.gpus;
  }
  std::int64_t highest = 0;
  for (const std::vector<std::int64_t>& group : groups) {
    highest = std::max(highest, *std::max_element(group.begin(), group.end()));
  }
  const std::int64_t per_node = std::max(spec.gpus_per_node, 1);
  return (highest / per_node + 1) * per_node;
}

/// The group first, then those beside it; a rank can be in one of them only.
Expected<std::vector<std::vector<std::int64_t>>> groups_of(const CollectiveWords& words,
                                                           const std::string& ranks) {
  const std::int64_t gpus = words.gpus > 0 ? words.gpus : kMostGpus;
  std::vector<std::vector<std::int64_t>> groups;
  std::vector<Diagnostic> faults;
  const auto add = [&](const std::string& text, const std::string& option) {
    Expected<std::vector<std::int64_t>> group = ranks_of(text, gpus, option);
    if (!group) {
      faults.insert(faults.end(), group.error().list.begin(), group.error().list.end());
      return;
    }
    for (const std::vector<std::int64_t>& other : groups) {
      for (const std::int64_t rank : *group) {
        if (std::find(other.begin(), other.end(), rank) != other.end()) {
          faults.push_back({"/beside",
                            "rank " + std::to_string(rank) + " is in two of the groups",
                            "groups that run side by side share no rank"});
          return;
        }
      }
    }
    groups.push_back(std::move(*group));
  };
  add(ranks, "ranks");
  for (const std::string& text : words.beside) {
    add(text, "beside");
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return groups;
}

/// Groups of which two members have to talk to each other and cannot.
std::vector<Diagnostic> unreachable_faults(CollectiveKind kind,
                                           const std::vector<std::vector<std::int64_t>>& groups,
                                           const Topology& topology) {
  const TrafficPattern pattern =
      kind == CollectiveKind::kAllToAll ? TrafficPattern::kAllPairs : TrafficPattern::kRing;
  std::vector<Diagnostic> faults;
  for (std::size_t at = 0; at < groups.size(); ++at) {
    if (const auto pair = topology.unreachable_pair(groups[at], pattern)) {
      faults.push_back({at == 0 ? "/ranks" : "/beside",
                        "rank " + std::to_string(pair->second) + " cannot be reached from rank " +
                            std::to_string(pair->first),
                        topology.why_unreachable()});
    }
  }
  return faults;
}

std::vector<Diagnostic> question_faults(const CollectiveQuestion& question) {
  std::vector<Diagnostic> faults;
  if (question.kind == CollectiveKind::kSendReceive && question.shape.size != 2) {
    faults.push_back({"/ranks",
                      "send_recv is between two ranks, not " + std::to_string(question.shape.size),
                      "write for example --ranks 0,8"});
  }
  if (question.algorithm.empty() || !faults.empty()) {
    return faults;
  }
  std::vector<std::string> names;
  for (const std::string_view name :
       collective_algorithms(question.kind, question.shape, link_model(question.hardware))) {
    names.emplace_back(name);
  }
  if (std::find(names.begin(), names.end(), question.algorithm) == names.end()) {
    const std::string where =
        std::to_string(question.shape.size) + " " + plural("rank", question.shape.size) + " in " +
        std::to_string(question.shape.nodes) + " " + plural("node", question.shape.nodes);
    faults.push_back(
        {"/algorithm",
         "\"" + question.algorithm + "\" does not do " + question.op + " of " + where + " on " +
             question.hardware.name,
         names.empty() ? "a group of one has nothing to do" : "what applies: " + joined(names)});
  }
  return faults;
}

}  // namespace

CollectiveCost CollectiveQuestion::cost(Bytes bytes) const {
  LinkModel links = link_model(hardware);
  links.algorithm = algorithm;
  return collective_cost(kind, bytes, shape, links);
}

double CollectiveQuestion::bus(Bytes bytes, double seconds) const {
  const double picoseconds = seconds * 1e12;
  return bus_bandwidth(
      kind, bytes, shape.size, Duration{static_cast<std::int64_t>(picoseconds + 0.5)});
}

std::string CollectiveQuestion::limiting_link(const CollectiveCost& cost) const {
  if (cost.total() == Duration{}) {
    return "";
  }
  return foretrain::limiting_link(kind, cost.across_limits, shape);
}

Expected<CollectiveKind> collective_kind(const std::string& op) {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kKinds) {
    if (to_string(kind) == op) {
      return kind;
    }
    names.emplace_back(to_string(kind));
  }
  const std::string near = did_you_mean(op, names);
  return refuse({"/op",
                 "unknown operation \"" + op + "\"",
                 near.empty() ? "operations: " + joined(names) : near});
}

Expected<CollectiveQuestion> ask_collective(const CollectiveWords& words,
                                            const std::string& ranks) {
  Faults faults;
  const auto add = [&faults](std::vector<Diagnostic> more) {
    faults.list.insert(faults.list.end(), more.begin(), more.end());
  };
  const Expected<CollectiveKind> kind = collective_kind(words.op);
  const Expected<TopologySpec> spec = read_topology(words.topology);
  const Expected<std::vector<std::vector<std::int64_t>>> groups = groups_of(words, ranks);
  if (!kind) {
    add(kind.error().list);
  }
  if (!spec) {
    adopt_topology_faults(spec.error(), faults);
  }
  if (!groups) {
    add(groups.error().list);
  }
  BuiltCluster cluster;
  if (spec && (groups || words.gpus > 0)) {
    cluster =
        build_cluster(*spec, words.failed, groups ? gpus_for(words, *groups, *spec) : words.gpus);
    add(std::move(cluster.faults));
  }
  const bool whole = kind && groups && cluster.topology;
  std::vector<Diagnostic> parted =
      whole ? unreachable_faults(*kind, *groups, *cluster.topology) : std::vector<Diagnostic>{};
  CollectiveQuestion question;
  if (whole && parted.empty()) {
    question.kind = *kind;
    question.op = words.op;
    question.hardware = *spec;
    question.ranks = groups->front();
    question.shape = cluster.topology->group_shapes(*groups).front();
    question.algorithm = words.algorithm;
    question.groups_beside = static_cast<std::int64_t>(groups->size()) - 1;
    add(question_faults(question));
  }
  add(std::move(parted));
  if (!faults.list.empty()) {
    return tl::unexpected<Faults>(std::move(faults));
  }
  return question;
}

Expected<std::vector<Bytes>> sweep_sizes(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto bad = [&](const std::string& why) {
    return refuse({"/sweep", "\"" + text + "\" " + why, "write for example --sweep 1MiB:8GiB"});
  };
  if (colon == std::string::npos) {
    return bad("is not MIN:MAX");
  }
  const Expected<Bytes> least = parse_size(text.substr(0, colon));
  const Expected<Bytes> most = parse_size(text.substr(colon + 1));
  if (!least || !most) {
    return bad("holds what is no size");
  }
  if (least->value <= 0 || most->value < least->value) {
    return bad("must go up from at least one byte");
  }
  std::vector<Bytes> sizes;
  for (std::int64_t bytes = least->value; bytes <= most->value; bytes *= 2) {
    sizes.push_back(Bytes{bytes});
    if (bytes > most->value / 2) {
      break;
    }
  }
  return sizes;
}

std::string first_ranks(std::int64_t count) {
  return count <= 1 ? "0" : "0-" + std::to_string(count - 1);
}

}  // namespace foretrain
