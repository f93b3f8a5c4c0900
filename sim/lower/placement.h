#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/mesh.h"
#include "foretrain/model.h"
#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/schedule.h"
#include "foretrain/topology.h"
#include "sim/lower/vocabulary.h"

#include <array>
#include <cstdint>
#include <vector>

/// Where every rank sits: its coordinates, groups and peers, and how those lie on the machine.
namespace foretrain {

/// Distinct group shapes, numbered in order of first use.
class ShapeTable {
 public:
  std::int32_t index(const GroupShape& shape);
  const GroupShape& shape(std::int32_t index) const {
    return shapes_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<GroupShape> shapes_;
};

/// What a rank's costs depend on beside its pipeline rank; equal ones share a template.
struct LinkClass {
  std::int32_t pp_rank = 0;
  std::array<std::int32_t, kGroupKinds> shapes{};  ///< per GroupKind; -1: a group of one
  std::int32_t to_next = -1, to_previous = -1;     ///< shapes of the two-rank hops; -1: no hop
  std::int32_t shape(GroupKind kind) const { return shapes[static_cast<std::size_t>(kind)]; }
  auto operator<=>(const LinkClass&) const = default;
};

struct RankPlace {
  Coordinates at;
  std::int32_t link_class = 0;
  std::array<std::int32_t, kPeerSlots> peers = {-1, -1};
  std::vector<std::int32_t> groups;  ///< per GroupKind
};

struct Placements {
  ShapeTable shapes;
  std::vector<LinkClass> link_classes;  ///< sorted; index = template
  std::vector<RankPlace> ranks;
  std::vector<std::vector<std::vector<std::int32_t>>> groups;  ///< [GroupKind][group] -> ranks
};

/// The first two ranks that failed links, or cables that are not there, keep from one another
/// though a group of the job, or its pipeline, joins them; empty: none.
std::vector<Diagnostic> parted_groups(const Scenario& scenario, const Topology& topology);

/// Places every rank of a scenario. Groups of one rank are left out (-1). `slices`: which virtual
/// stages hold a copy of the embedding table. Pipeline ranks that hold the same stages of two model
/// copies reduce their gradients together.
Expected<Placements> place_ranks(const Scenario& scenario,
                                 const std::vector<StageSlice>& slices,
                                 const Schedule& schedule,
                                 const Topology& topology);

}  // namespace foretrain
