#pragma once

#include "sim/cluster/group_traffic.h"
#include "sim/cluster/topology_graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// What groups that communicate at once share: things of a capacity and what each puts on them.
namespace foretrain {

struct ResourceLoad {
  std::int32_t resource = 0;
  double amount = 0.0;
};

class SharedResources {
 public:
  SharedResources() = default;
  virtual ~SharedResources() = default;
  SharedResources(const SharedResources&) = delete;
  SharedResources& operator=(const SharedResources&) = delete;

  virtual std::int32_t count() const = 0;
  virtual double capacity(std::int32_t resource) const = 0;      ///< bytes per second
  virtual std::string link_id(std::int32_t resource) const = 0;  ///< one link it stands for

  /// Adds 1 wherever a byte between two nodes goes; its latency.
  virtual Duration lane(std::int64_t from,
                        std::int64_t to,
                        std::vector<ResourceLoad>& loads) const = 0;

  /// Adds what a byte from every member to every member of another node puts where.
  virtual void all_pairs(const std::vector<NodeMembers>& nodes,
                         std::vector<ResourceLoad>& loads) const = 0;
};

/// NICs, and uplinks and downlinks of leaves and pods taken together: exact where routes spread
/// evenly, as routes by destination on a whole fabric do. By arithmetic on the layout, undrawn.
class DomainResources : public SharedResources {
 public:
  explicit DomainResources(const ClusterLayout& layout);
  std::int32_t count() const override { return first_.back(); }
  double capacity(std::int32_t resource) const override;
  std::string link_id(std::int32_t resource) const override;
  Duration lane(std::int64_t from,
                std::int64_t to,
                std::vector<ResourceLoad>& loads) const override;
  void all_pairs(const std::vector<NodeMembers>& nodes,
                 std::vector<ResourceLoad>& loads) const override;

 private:
  enum Kind { kOut, kIn, kLeafUp, kLeafDown, kPodUp, kPodDown, kPcie, kKinds };
  std::int32_t at(Kind kind, std::int64_t index) const {
    return first_[kind] + static_cast<std::int32_t>(index);
  }
  Kind kind_of(std::int32_t resource) const;
  /// What a rank's bytes leave or enter its node through: a NIC; all of a GPU's or a node's.
  std::int64_t door(std::int64_t node, std::int64_t nic) const;
  double door_capacity(std::int64_t door) const;
  std::string door_id(std::int64_t door, bool out) const;
  void pairs_over_own_nics(const std::vector<NodeMembers>& nodes,
                           std::int64_t size,
                           std::vector<ResourceLoad>& loads) const;
  void pairs_over_rails(const std::vector<NodeMembers>& nodes,
                        std::int64_t size,
                        std::vector<ResourceLoad>& loads) const;

  const ClusterLayout& layout_;
  std::vector<std::int32_t> first_;  ///< of each kind; last: how many in all
};

/// Every link for itself, along routes.
class LinkResources : public SharedResources {
 public:
  LinkResources(const Topology& topology, const Router& router, Routing routing)
      : topology_(topology), router_(router), routing_(routing) {}
  std::int32_t count() const override;
  double capacity(std::int32_t resource) const override;
  std::string link_id(std::int32_t resource) const override;
  Duration lane(std::int64_t from,
                std::int64_t to,
                std::vector<ResourceLoad>& loads) const override;
  void all_pairs(const std::vector<NodeMembers>& nodes,
                 std::vector<ResourceLoad>& loads) const override;

 private:
  const Topology& topology_;
  const Router& router_;
  Routing routing_;
};

/// What slowed links (id, factor) leave of a group's rate inside its nodes, and of the rates
/// between nodes of groups that communicate at once. The topology's capacities are slowed already;
/// shapes come as they would be without.
void slow_down_inside(const Topology& topology,
                      const std::vector<NodeMembers>& nodes,
                      const std::map<std::string, double>& slow,
                      GroupShape& shape);
void slow_down_across(const Topology& topology,
                      const LinkResources& resources,
                      const std::vector<std::vector<NodeMembers>>& groups,
                      const std::map<std::string, double>& slow,
                      std::vector<GroupShape>& shapes);

}  // namespace foretrain
