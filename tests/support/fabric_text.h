#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// Texts of fabrics in the form of ibnetdiscover, written cable by cable.
namespace foretrain::test {

class FabricText {
 public:
  /// A node; its number. Kinds: "Switch", "Ca".
  int add(const std::string& kind, const std::string& name) {
    nodes_.push_back({kind, name, {}});
    return static_cast<int>(nodes_.size()) - 1;
  }

  /// A cable between the next free ports of two nodes.
  void connect(int a, int b, const std::string& rate = "4xNDR") {
    const int port_a = static_cast<int>(at(a).links.size()) + 1;
    const int port_b = static_cast<int>(at(b).links.size()) + 1;
    at(a).links.push_back({b, port_b, rate});
    at(b).links.push_back({a, port_a, rate});
  }

  /// An adapter of a host, on a switch.
  int hang(const std::string& name, int leaf, const std::string& rate = "4xNDR") {
    const int adapter = add("Ca", name);
    connect(adapter, leaf, rate);
    return adapter;
  }

  std::string guid(int node) const {
    return (nodes_[static_cast<std::size_t>(node)].kind == "Switch" ? "S-" : "H-") +
           std::to_string(1000 + node);
  }

  std::string text() const {
    std::string text = "#\n# Topology file: written by a test\n#\n";
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      text += block(static_cast<int>(node));
    }
    return text;
  }

 private:
  struct End {
    int peer;
    int peer_port;
    std::string rate;
  };
  struct Node {
    std::string kind, name;
    std::vector<End> links;
  };

  Node& at(int node) { return nodes_[static_cast<std::size_t>(node)]; }

  std::string block(int number) const {
    const Node& node = nodes_[static_cast<std::size_t>(number)];
    const bool is_switch = node.kind == "Switch";
    const std::size_t ports = std::max<std::size_t>(node.links.size(), is_switch ? 65 : 1);
    const std::string tab(1, '\x09');
    std::string text = "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x" + std::to_string(number) +
                       "\n" + (is_switch ? "switchguid" : "caguid") + "=0x" +
                       std::to_string(number) + "\n" + node.kind + tab + std::to_string(ports) +
                       " \"" + guid(number) + "\"" + tab + tab + "# \"" + node.name + "\"" +
                       (is_switch ? " enhanced port 0 lid 7 lmc 0" : "") + "\n";
    for (std::size_t port = 0; port < node.links.size(); ++port) {
      text += port_line(is_switch, static_cast<int>(port) + 1, node.links[port]);
    }
    return text;
  }

  std::string port_line(bool is_switch, int port, const End& end) const {
    const Node& peer = nodes_[static_cast<std::size_t>(end.peer)];
    const std::string tab(1, '\x09');
    const std::string to = "\"" + guid(end.peer) + "\"[" + std::to_string(end.peer_port) + "]";
    const std::string own = "[" + std::to_string(port) + "]";
    if (is_switch) {
      const std::string port_guid = peer.kind == "Ca" ? "(" + guid(end.peer) + ") " : "";
      return own + tab + to + port_guid + tab + tab + "# \"" + peer.name + "\" lid 9 " + end.rate +
             "\n";
    }
    return own + "(0002) " + tab + to + tab + tab + "# lid 9 lmc 0 \"" + peer.name + "\" lid 7 " +
           end.rate + "\n";
  }

  std::vector<Node> nodes_;
};

/// Groups of `hosts` hosts with an adapter on each of `rails` leaves of their group, an aggregation
/// node in every switch, `cables` side by side from every leaf to every spine.
struct RailFabric {
  int groups = 2;
  int hosts = 4;
  int rails = 2;
  int spines = 2;
  int cables = 1;
  bool aggregation = false;

  FabricText build() const {
    FabricText text;
    std::vector<int> tops;
    for (int spine = 0; spine < spines; ++spine) {
      tops.push_back(text.add("Switch", "MF0;spine-" + std::to_string(spine) + ":MQM9701/U1"));
    }
    std::vector<int> leaves;
    for (int leaf = 0; leaf < groups * rails; ++leaf) {
      leaves.push_back(text.add("Switch", "MF0;leaf-" + std::to_string(leaf) + ":MQM9701/U1"));
      for (int cable = 0; cable < spines * cables; ++cable) {
        text.connect(leaves.back(), tops[static_cast<std::size_t>(cable / cables)]);
      }
    }
    for (int host = 0; host < groups * hosts; ++host) {
      for (int rail = 0; rail < rails; ++rail) {
        const int leaf = leaves[static_cast<std::size_t>(host / hosts * rails + rail)];
        text.hang("node" + std::to_string(host) + " mlx5_" + std::to_string(rail), leaf);
      }
    }
    tops.insert(tops.end(), leaves.begin(), leaves.end());
    for (const int at : aggregation ? tops : std::vector<int>{}) {
      text.hang("Mellanox Technologies Aggregation Node", at);
    }
    return text;
  }
};

}  // namespace foretrain::test
