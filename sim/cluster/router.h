#pragma once

#include "foretrain/topology.h"
#include "sim/cluster/group_traffic.h"
#include "sim/cluster/layout.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace foretrain {

struct Drawing;

/// Finds routes in a drawing: inside a node and at its ends by table, between switches along
/// shortest paths whose distances are kept by where a destination is attached (MODEL 4.1). May be
/// asked by several threads at once.
class Router {
 public:
  Router(const ClusterLayout& layout, const Drawing& drawing, Routing routing);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Links in order, nothing when there is no way; no links from a GPU to itself.
  std::optional<std::vector<std::int32_t>> route(std::int64_t from, std::int64_t to) const;

  /// By link, how many of the routes from every member to every member of another node cross it;
  /// pairs without a route count nothing. Exact where routes depend on the destination; hashed ones
  /// count as if spread evenly, and on top as much as the fullest of the links strays above that.
  std::vector<double> all_pairs(const std::vector<NodeMembers>& nodes) const;

  struct Wiring;

 private:
  class Search;
  std::unique_ptr<Wiring> wiring_;
};

}  // namespace foretrain
