#include "foretrain/discover.h"
#include "sim/discover/ibnetdiscover.h"
#include "sim/discover/text_lines.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

bool is_aggregation_node(std::string_view name) {
  return name.find("Aggregation Node") != std::string_view::npos;
}

/// The description an adapter has until its host gives it one: "MT4129 ConnectX7   Mellanox
/// Technologies".
bool is_product_name(std::string_view name) {
  const std::string_view first = take_word(name);
  return name.ends_with("Mellanox Technologies") ||
         (first.starts_with("MT") && whole_number_in(first.substr(2)).has_value());
}

class FabricBuilder {
 public:
  explicit FabricBuilder(std::vector<IbNode> nodes) : nodes_(std::move(nodes)) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      by_guid_.emplace(nodes_[node].guid, node);
      if (nodes_[node].kind == IbNodeKind::kAdapter) {
        ++carriers_[nodes_[node].name];
      }
    }
  }

  Expected<FabricDiscovery> build() {
    check_ends();
    if (faults_.none()) {
      place_switches();
      for (const IbNode& node : nodes_) {
        place(node);
      }
      sort_hosts();
    }
    if (faults_.none() && result_.links == 0) {
      faults_.add(1, "no cable is listed", "is the text whole?");
    }
    if (!faults_.none()) {
      return refuse(faults_.take());
    }
    return std::move(result_);
  }

 private:
  void check_ends() {
    for (const IbNode& node : nodes_) {
      for (const auto& [port, link] : node.links) {
        check_end(node, port, link);
      }
    }
  }

  void check_end(const IbNode& node, std::int32_t port, const IbPort& link) {
    const std::string here = quoted_name(node.guid) + " port " + std::to_string(port);
    const std::string there = quoted_name(link.peer) + " port " + std::to_string(link.peer_port);
    const auto found = by_guid_.find(link.peer);
    if (found == by_guid_.end()) {
      faults_.add(link.line,
                  quoted_name(link.peer) + ", the peer of " + here + ", is not listed",
                  "both ends of a cable are listed: is the text whole?");
      return;
    }
    const IbNode& peer = nodes_[found->second];
    if (&peer == &node) {
      faults_.add(link.line, here + " leads to its own node", "leave a loopback cable out");
      return;
    }
    const auto back = peer.links.find(link.peer_port);
    if (back == peer.links.end()) {
      faults_.add(link.line,
                  here + " leads to " + there + ", which lists nothing",
                  "both ends of a cable are listed: is the text whole?");
      return;
    }
    if (back->second.peer != node.guid || back->second.peer_port != port) {
      faults_.add(link.line,
                  here + " leads to " + there + ", which by line " +
                      std::to_string(back->second.line) + " leads to " +
                      quoted_name(back->second.peer) + " port " +
                      std::to_string(back->second.peer_port),
                  "one of the two lines is wrong");
    } else if (back->second.rate != link.rate && link.line < back->second.line) {
      faults_.add(link.line,
                  here + " is not as fast as its other end says in line " +
                      std::to_string(back->second.line),
                  "a cable has one rate");
    } else if (node.kind != IbNodeKind::kSwitch && peer.kind != IbNodeKind::kSwitch &&
               link.line < back->second.line) {
      faults_.add(link.line,
                  here + " leads to " + there + " without a switch",
                  "adapters hang on switches");
    }
  }

  void place_switches() {
    std::map<std::string, int> carriers;
    for (const IbNode& node : nodes_) {
      carriers[clean_name(node.name)] += node.kind == IbNodeKind::kSwitch ? 1 : 0;
    }
    for (const IbNode& node : nodes_) {
      if (node.kind == IbNodeKind::kSwitch) {
        indices_.emplace(node.guid, static_cast<std::int32_t>(result_.fabric.switches.size()));
        const std::string name = clean_name(node.name);
        const bool unique = carriers[name] == 1 && !name.empty();
        result_.fabric.switches.push_back(unique ? name : name + " " + clean_name(node.guid));
      }
    }
  }

  void place(const IbNode& node) {
    result_.links += static_cast<std::int64_t>(node.links.size());
    switch (node.kind) {
      case IbNodeKind::kSwitch:
        place_cables(node);
        return;
      case IbNodeKind::kRouter:
        ++result_.routers;
        ++result_.fabric.other_adapters;
        return;
      case IbNodeKind::kAdapter:
        place_adapter(node);
        return;
    }
  }

  void place_cables(const IbNode& node) {
    const std::int32_t own = indices_.at(node.guid);
    for (const auto& [port, link] : node.links) {
      const auto other = indices_.find(link.peer);
      if (other != indices_.end() && own < other->second) {
        result_.fabric.cables.push_back({own, other->second, link.rate});
      }
    }
  }

  void place_adapter(const IbNode& node) {
    ++result_.adapters;
    std::string_view rest = node.name;
    const std::string host = clean_name(take_word(rest));
    const std::string device = clean_name(take_word(rest));
    const bool aggregation = is_aggregation_node(node.name);
    const bool unnamed =
        is_product_name(node.name) || carriers_[node.name] > 1 || host.empty() || device.empty();
    if (aggregation || unnamed) {
      ++(aggregation ? result_.aggregation_nodes : result_.unnamed_adapters);
      ++result_.fabric.other_adapters;
      return;
    }
    for (const auto& [port, link] : node.links) {
      const std::string suffix = port == 1 ? "" : "/" + std::to_string(port);
      hosts_[host].push_back({device + suffix, indices_.at(link.peer), link.peer_port, link.rate});
    }
  }

  void sort_hosts() {
    for (auto& [name, adapters] : hosts_) {
      std::sort(adapters.begin(), adapters.end(), [](const auto& a, const auto& b) {
        return natural_less(a.name, b.name);
      });
      result_.fabric.hosts.push_back({name, std::move(adapters)});
    }
    std::sort(result_.fabric.hosts.begin(),
              result_.fabric.hosts.end(),
              [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  }

  std::vector<IbNode> nodes_;
  std::map<std::string_view, std::size_t> by_guid_;
  std::map<std::string_view, std::int64_t> carriers_;  ///< adapters of a name
  std::map<std::string_view, std::int32_t> indices_;   ///< of switches
  std::map<std::string, std::vector<DiscoveredFabric::Adapter>> hosts_;
  FabricDiscovery result_;
  LineFaults faults_;
};

}  // namespace

Expected<FabricDiscovery> parse_ibnetdiscover(std::string_view text) {
  Expected<std::vector<IbNode>> nodes = read_ib_blocks(text);
  if (!nodes) {
    return tl::unexpected<Faults>(nodes.error());
  }
  return FabricBuilder(std::move(*nodes)).build();
}

}  // namespace foretrain
