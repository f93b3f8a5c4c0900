#pragma once

#include "foretrain/topology.h"
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

 private:
  struct Wiring;
  class Search;
  std::unique_ptr<Wiring> wiring_;
};

}  // namespace foretrain
