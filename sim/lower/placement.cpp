#include "sim/lower/placement.h"

#include "sim/lower/vocabulary.h"

#include <algorithm>
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
  for (const ProcessGroup& group : groups) {
    if (group.ranks.size() < 2) {
      continue;
    }
    const std::int32_t shape = shapes.index(topology.group_shape(group.ranks));
    const auto index = static_cast<std::int32_t>(places.groups.size());
    std::vector<std::int32_t> members;
    for (const std::int64_t rank : group.ranks) {
      members.push_back(static_cast<std::int32_t>(rank));
      places.group_of[static_cast<std::size_t>(rank)] = index;
      places.shape_of[static_cast<std::size_t>(rank)] = shape;
    }
    places.groups.push_back(std::move(members));
  }
  return places;
}

/// First and last stage of each pipeline: the ranks that share a tied embedding.
std::vector<ProcessGroup> embedding_groups(const DeviceMesh& mesh) {
  std::vector<ProcessGroup> ends;
  for (const ProcessGroup& pipeline : mesh.groups("pp")) {
    ends.push_back({{pipeline.ranks.front(), pipeline.ranks.back()}});
  }
  return ends;
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

}  // namespace

std::int32_t ShapeTable::index(const GroupShape& shape) {
  const auto same_costs = [&shape](const GroupShape& other) {
    GroupShape unnamed = other;
    unnamed.slowest_link_inside = shape.slowest_link_inside;
    unnamed.slowest_link_across = shape.slowest_link_across;
    return unnamed == shape;
  };
  const auto found = std::find_if(shapes_.begin(), shapes_.end(), same_costs);
  if (found == shapes_.end()) {
    shapes_.push_back(shape);
    return static_cast<std::int32_t>(shapes_.size()) - 1;
  }
  return static_cast<std::int32_t>(found - shapes_.begin());
}

Expected<Placements> place_ranks(const Scenario& scenario, const Topology& topology) {
  Expected<DeviceMesh> mesh = DeviceMesh::build(mesh_size(scenario));
  if (!mesh) {
    return tl::unexpected(mesh.error());
  }
  const auto ranks = static_cast<std::size_t>(mesh->ranks());
  const bool tied = scenario.model.tied_embeddings && scenario.parallelism.pp > 1;
  Placements places;
  const std::array<std::vector<ProcessGroup>, 5> lists = {
      mesh->groups("tp"),
      mesh->groups("dp-cp"),
      norm_groups(*mesh, scenario.parallelism.sharding),
      tied ? embedding_groups(*mesh) : std::vector<ProcessGroup>{},
      mesh->groups("pp")};
  std::vector<KindPlaces> kinds;
  for (const std::vector<ProcessGroup>& list : lists) {
    kinds.push_back(place_kind(list, topology, places.shapes, ranks));
    places.groups.push_back(kinds.back().groups);
  }

  const std::int64_t pp = scenario.parallelism.pp;
  const auto hop = [&](std::int64_t from, std::int64_t to) {
    const std::array<std::int64_t, 2> pair = {from, to};
    return places.shapes.index(topology.group_shape(pair));
  };
  std::vector<LinkClass> class_of(ranks);
  places.ranks.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto rank = static_cast<std::int64_t>(i);
    RankPlace& place = places.ranks[i];
    LinkClass& links = class_of[i];
    place.at = mesh->coordinates(rank);
    links.pp_rank = static_cast<std::int32_t>(place.at.pp);
    links.tensor = kinds[kTensorGroup].shape_of[i];
    links.data = kinds[kDataGroup].shape_of[i];
    links.norm = kinds[kNormGroup].shape_of[i];
    links.embedding = kinds[kEmbeddingGroup].shape_of[i];
    links.pipeline = kinds[kPipelineGroup].shape_of[i];
    for (const KindPlaces& kind : kinds) {
      place.groups.push_back(kind.group_of[i]);
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
      links.to_next = hop(rank, next_rank);
      links.to_previous = hop(rank, previous_rank);
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
