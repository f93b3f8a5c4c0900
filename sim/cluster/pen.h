#pragma once

#include "sim/cluster/topology_graph.h"

#include <string>
#include <utility>

namespace foretrain {

/// Adds devices and pairs of links to a drawing in a fixed order.
class Pen {
 public:
  explicit Pen(Drawing& drawing) : drawing_(drawing) {}

  std::int32_t device(DeviceKind kind,
                      std::int64_t node,
                      std::int64_t index,
                      std::string name,
                      std::int32_t port = 0) {
    drawing_.devices.push_back(
        {kind, static_cast<std::int32_t>(node), static_cast<std::int32_t>(index), std::move(name)});
    drawing_.port_of.push_back(port);
    return static_cast<std::int32_t>(drawing_.devices.size()) - 1;
  }

  /// Both directions, `up` first. `copy`: 2 for the second cable between the same two devices, ...
  void cable(std::int32_t a,
             std::int32_t b,
             Bandwidth rate,
             Duration up,
             Duration down,
             LinkKind kind,
             std::int64_t copy = 1) {
    const std::string suffix = copy > 1 ? "#" + std::to_string(copy) : "";
    link(a, b, rate, up, kind, suffix);
    link(b, a, rate, down, kind, suffix);
  }

 private:
  void link(std::int32_t from,
            std::int32_t to,
            Bandwidth rate,
            Duration latency,
            LinkKind kind,
            const std::string& suffix) {
    const auto name = [&](std::int32_t device) -> const std::string& {
      return drawing_.devices[static_cast<std::size_t>(device)].name;
    };
    drawing_.links.push_back(
        {from, to, rate, link_latency(latency), kind, name(from) + ">" + name(to) + suffix});
  }

  Drawing& drawing_;
};

}  // namespace foretrain
