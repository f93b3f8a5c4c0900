#include "sim/lower/placement.h"

#include "sim/lower/link_traffic.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace foretrain {
namespace {

/// The groups of one kind: members, and per rank the group and its shape.
struct KindPlaces {
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> group_of;
  std::vector<std::int32_t> shape_of;
};

KindPlaces place_kind(const std::vector<ProcessGroup>& groups,
                      const Topology& topology,
                      ShapeTable& shapes,
                      std::size_t ranks) {
  KindPlaces places;
  places.group_of.assign(ranks, -1);
  places.shape_of.assign(ranks, -1);
  std::vector<std::vector<std::int64_t>> together;
  for (const ProcessGroup& group : groups) {
    if (group.ranks.size() > 1) {
      together.push_back(group.ranks);
    }
  }
  const std::vector<GroupShape> of_groups = topology.group_shapes(together);
  for (std::size_t at = 0; at < together.size(); ++at) {
    const std::int32_t shape = shapes.index(of_groups[at]);
    const auto index = static_cast<std::int32_t>(places.groups.size());
    std::vector<std::int32_t> members;
    for (const std::int64_t rank : together[at]) {
      members.push_back(static_cast<std::int32_t>(rank));
      places.group_of[static_cast<std::size_t>(rank)] = index;
      places.shape_of[static_cast<std::size_t>(rank)] = shape;
    }
    places.groups.push_back(std::move(members));
  }
  return places;
}

/// Pipeline ranks with a copy of the embedding table: its gradients are summed over them. With two
/// model copies the ranks at both ends hold all of it, and sum it with their other gradients.
std::vector<ProcessGroup> embedding_groups(const DeviceMesh& mesh,
                                           const Scenario& scenario,
                                           const std::vector<StageSlice>& slices,
                                           const Schedule& schedule) {
  std::vector<bool> holds(static_cast<std::size_t>(scenario.parallelism.pp), false);
  if (schedule.copies() > 1) {
    return {};
  }
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    if (holds_embedding_table(scenario.model, slices[static_cast<std::size_t>(stage)])) {
      holds[static_cast<std::size_t>(schedule.owner(stage))] = true;
    }
  }
  std::vector<ProcessGroup> holders;
  for (const ProcessGroup& pipeline : mesh.groups("pp")) {
    ProcessGroup& group = holders.emplace_back();
    for (std::size_t rank = 0; rank < holds.size(); ++rank) {
      if (holds[rank]) {
        group.ranks.push_back(pipeline.ranks[rank]);
      }
    }
  }
  return holders;
}

/// Groups of a pipeline rank joined with those of the rank that holds the same stages in the other
/// model copy: rank r and p-1-r.
std::vector<ProcessGroup> mirrored(const DeviceMesh& mesh,
                                   const Schedule& schedule,
                                   std::vector<ProcessGroup> groups) {
  if (schedule.copies() == 1) {
    return groups;
  }
  std::vector<ProcessGroup> joined;
  for (ProcessGroup& group : groups) {
    Coordinates at = mesh.coordinates(group.ranks.front());
    if (2 * at.pp >= schedule.size.pp) {
      continue;
    }
    for (std::size_t i = 0, own = group.ranks.size(); i < own; ++i) {
      Coordinates mirror = mesh.coordinates(group.ranks[i]);
      mirror.pp = schedule.size.pp - 1 - mirror.pp;
      group.ranks.push_back(mesh.rank(mirror));
    }
    std::sort(group.ranks.begin(), group.ranks.end());
    joined.push_back(std::move(group));
  }
  return joined;
}

/// Groups cut into parts of `size` neighbours: where a shard of the states spans a part only.
std::vector<ProcessGroup> shard_groups(const std::vector<ProcessGroup>& groups, std::int64_t size) {
  std::vector<ProcessGroup> parts;
  for (const ProcessGroup& group : groups) {
    for (auto at = group.ranks.begin(); at != group.ranks.end(); at += size) {
      parts.push_back({{at, at + size}});
    }
  }
  return parts;
}

/// Ranks of the same place in each part of `size`: they hold the same shard.
std::vector<ProcessGroup> replica_groups(const std::vector<ProcessGroup>& groups,
                                         std::int64_t size) {
  std::vector<ProcessGroup> holders;
  for (const ProcessGroup& group : groups) {
    for (std::int64_t place = 0; place < size; ++place) {
      ProcessGroup& replicas = holders.emplace_back();
      for (auto at = static_cast<std::size_t>(place); at < group.ranks.size();
           at += static_cast<std::size_t>(size)) {
        replicas.ranks.push_back(group.ranks[at]);
      }
    }
  }
  return holders;
}

std::vector<ProcessGroup> world_group(std::int64_t ranks) {
  ProcessGroup world;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    world.ranks.push_back(rank);
  }
  return {std::move(world)};
}

/// The gradient norm is reduced over the ranks that hold different gradients: a replica, or
/// everybody when gradients are sharded over data parallelism too.
std::vector<ProcessGroup> norm_groups(const DeviceMesh& mesh, Sharding sharding) {
  return sharding == Sharding::kNone ? mesh.groups("model") : world_group(mesh.ranks());
}

/// The groups of each GroupKind.
std::array<std::vector<ProcessGroup>, kGroupKinds> group_lists(
    const Scenario& scenario,
    const std::vector<StageSlice>& slices,
    const Schedule& schedule,
    const DeviceMesh& mesh) {
  std::array<std::vector<ProcessGroup>, kGroupKinds> lists;
  const Parallelism& degrees = scenario.parallelism;
  const auto of = [&mesh](const char* dimension, std::int64_t degree) {
    return degree > 1 ? mesh.groups(dimension) : std::vector<ProcessGroup>{};
  };
  const auto data_groups = [&](const char* dimension, std::int64_t degree) {
    return degree > 1 ? mirrored(mesh, schedule, mesh.groups(dimension))
                      : std::vector<ProcessGroup>{};
  };
  lists[kTensorGroup] = of("tp", degrees.tp);
  lists[kNormGroup] = norm_groups(mesh, scenario.parallelism.sharding);
  lists[kEmbeddingGroup] = embedding_groups(mesh, scenario, slices, schedule);
  lists[kPipelineGroup] = of("pp", degrees.pp);
  lists[kContextGroup] = of("cp", degrees.cp);
  const ShardSpan span = shard_span(scenario);
  const std::vector<ProcessGroup> data =
      data_groups("dp-cp", degrees.dp * degrees.cp * schedule.copies());
  lists[kDataGroup] = shard_groups(data, span.ranks);
  lists[kReplicaGroup] = replica_groups(data, span.ranks);
  if (scenario.model.experts > 0) {
    lists[kExpertGroup] = of("ep", degrees.ep);
    lists[kExpertTensorGroup] = of("etp", degrees.etp);
    const std::vector<ProcessGroup> experts = data_groups("edp", span.expert_ranks * span.replicas);
    lists[kExpertDataGroup] = shard_groups(experts, span.expert_ranks);
    lists[kExpertReplicaGroup] = replica_groups(experts, span.expert_ranks);
  }
  return lists;
}

/// By rank, the hop to its next pipeline rank. Hops between the same two pipeline ranks run at
/// once.
std::vector<GroupShape> hops_to_next(const DeviceMesh& mesh,
                                     std::int64_t pp,
                                     const Topology& topology) {
  std::vector<GroupShape> hops(static_cast<std::size_t>(mesh.ranks()));
  for (std::int64_t stage = 0; pp > 1 && stage < pp; ++stage) {
    std::vector<std::vector<std::int64_t>> pairs;
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      Coordinates next = mesh.coordinates(rank);
      if (next.pp == stage) {
        next.pp = (stage + 1) % pp;
        pairs.push_back({rank, mesh.rank(next)});
      }
    }
    const std::vector<GroupShape> shapes = topology.group_shapes(pairs);
    for (std::size_t at = 0; at < pairs.size(); ++at) {
      hops[static_cast<std::size_t>(pairs[at].front())] = shapes[at];
    }
  }
  return hops;
}

/// Two ranks of a group that have to talk to each other and cannot.
std::optional<Diagnostic> unreachable_pair(const std::vector<ProcessGroup>& groups,
                                           GroupKind kind,
                                           const Scenario& scenario,
                                           const Topology& topology) {
  const TrafficPattern pattern = pattern_of(scenario, kind);
  for (const ProcessGroup& group : groups) {
    auto pair = topology.unreachable_pair(group.ranks, pattern);
    for (std::size_t at = 0; kind == kPipelineGroup && !pair && at < group.ranks.size(); ++at) {
      const std::int64_t next = group.ranks[(at + 1) % group.ranks.size()];
      pair = topology.unreachable_pair(std::array{group.ranks[at], next}, TrafficPattern::kRing);
    }
    if (pair) {
      return Diagnostic{"/cluster",
                        "gpu" + std::to_string(pair->first) + " and gpu" +
                            std::to_string(pair->second) +
                            " are in one group, but no route is left between them",
                        topology.why_unreachable()};
    }
  }
  return std::nullopt;
}

}  // namespace

std::int32_t ShapeTable::index(const GroupShape& shape) {
  const auto same_costs = [&shape](const GroupShape& other) {
    GroupShape unnamed = other;
    unnamed.slowest_link_inside = shape.slowest_link_inside;
    unnamed.slowest_link_across = shape.slowest_link_across;
    unnamed.slowest_link_all_pairs = shape.slowest_link_all_pairs;
    return unnamed == shape;
  };
  const auto found = std::find_if(shapes_.begin(), shapes_.end(), same_costs);
  if (found == shapes_.end()) {
    shapes_.push_back(shape);
    return static_cast<std::int32_t>(shapes_.size()) - 1;
  }
  return static_cast<std::int32_t>(found - shapes_.begin());
}

std::vector<Diagnostic> parted_groups(const Scenario& scenario, const Topology& topology) {
  const TopologySpec& hardware = topology.spec();
  const Expected<DeviceMesh> mesh = DeviceMesh::build(mesh_size(scenario));
  const Expected<Schedule> schedule = schedule_of(scenario);
  if (!mesh || !schedule ||
      (hardware.failed_links.empty() && hardware.fabric != FabricKind::kDiscovered)) {
    return {};
  }
  const std::vector<StageSlice> slices = stage_slices(scenario.model, scenario.parallelism);
  const auto lists = group_lists(scenario, slices, *schedule, *mesh);
  for (std::size_t kind = 0; kind < lists.size(); ++kind) {
    if (std::optional<Diagnostic> fault =
            unreachable_pair(lists[kind], static_cast<GroupKind>(kind), scenario, topology)) {
      return {*std::move(fault)};
    }
  }
  return {};
}

Expected<Placements> place_ranks(const Scenario& scenario,
                                 const std::vector<StageSlice>& slices,
                                 const Schedule& schedule,
                                 const Topology& topology) {
  Expected<DeviceMesh> mesh = DeviceMesh::build(mesh_size(scenario));
  if (!mesh) {
    return tl::unexpected(mesh.error());
  }
  const auto ranks = static_cast<std::size_t>(mesh->ranks());
  Placements places;
  std::vector<KindPlaces> kinds;
  for (const std::vector<ProcessGroup>& list : group_lists(scenario, slices, schedule, *mesh)) {
    kinds.push_back(place_kind(list, topology, places.shapes, ranks));
    places.groups.push_back(kinds.back().groups);
  }

  const std::int64_t pp = scenario.parallelism.pp;
  const std::vector<GroupShape> hops = hops_to_next(*mesh, pp, topology);
  const auto hop_from = [&](std::int64_t rank) {
    return places.shapes.index(hops[static_cast<std::size_t>(rank)]);
  };
  std::vector<LinkClass> class_of(ranks);
  places.ranks.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto rank = static_cast<std::int64_t>(i);
    RankPlace& place = places.ranks[i];
    LinkClass& links = class_of[i];
    place.at = mesh->coordinates(rank);
    links.pp_rank = static_cast<std::int32_t>(place.at.pp);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      links.shapes[kind] = kinds[kind].shape_of[i];
      place.groups.push_back(kinds[kind].group_of[i]);
    }
    if (pp > 1) {
      Coordinates next = place.at;
      Coordinates previous = place.at;
      next.pp = (place.at.pp + 1) % pp;
      previous.pp = (place.at.pp + pp - 1) % pp;
      const std::int64_t next_rank = mesh->rank(next);
      const std::int64_t previous_rank = mesh->rank(previous);
      place.peers[kNext] = static_cast<std::int32_t>(next_rank);
      place.peers[kPrevious] = static_cast<std::int32_t>(previous_rank);
      links.to_next = hop_from(rank);
      links.to_previous = hop_from(previous_rank);
    }
  }
  places.link_classes = class_of;
  std::sort(places.link_classes.begin(), places.link_classes.end());
  places.link_classes.erase(std::unique(places.link_classes.begin(), places.link_classes.end()),
                            places.link_classes.end());
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto found =
        std::lower_bound(places.link_classes.begin(), places.link_classes.end(), class_of[i]);
    places.ranks[i].link_class = static_cast<std::int32_t>(found - places.link_classes.begin());
  }
  return places;
}

}  // namespace foretrain
