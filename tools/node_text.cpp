#include "tools/node_text.h"

#include "sim/base/format.h"

#include <algorithm>

namespace foretrain {
namespace {

using Interconnect = NodeDescription::Interconnect;

std::string bandwidth_text(Bandwidth rate) {
  return rate.bytes_per_second == 0 ? "not told"
                                    : human_rate(static_cast<double>(rate.bytes_per_second));
}

/// The slowest link of the GPUs; 0 when one is not known.
Bandwidth link_rate(const NodeDescription& node) {
  Bandwidth slowest = node.gpus.empty() ? Bandwidth{} : nvlink_rate(node.gpus.front().sm);
  for (const NodeDescription::Gpu& gpu : node.gpus) {
    slowest = std::min(slowest, nvlink_rate(gpu.sm));
  }
  return slowest;
}

std::int64_t links_between_halves(const NodeDescription& node) {
  const std::size_t half = node.gpus.size() / 2;
  if (node.interconnect == Interconnect::kNvSwitch) {
    return static_cast<std::int64_t>(half) * node.nvlinks_per_gpu();
  }
  std::int64_t links = 0;
  for (std::size_t low = 0; low < half; ++low) {
    for (std::size_t high = half; high < node.gpus.size(); ++high) {
      links += node.nvlinks[low][high];
    }
  }
  return links;
}

/// "NV18", "NV4", or the kind of way without NVLink.
std::string links_text(const NodeDescription& node) {
  const std::string number = std::to_string(node.nvlinks_per_gpu());
  switch (node.interconnect) {
    case Interconnect::kNvSwitch:
      return "NVLink through switches, " + number + " links of each GPU";
    case Interconnect::kMesh:
      return "NVLink from GPU to GPU, " + number + " links of each GPU";
    case Interconnect::kPartial:
      return "NVLink between some of the GPUs only, at least " + number + " links of each GPU";
    case Interconnect::kPcie:
      return node.looped == 0 ? "no NVLink"
                              : "no NVLink between GPUs: the file leads those of " +
                                    std::to_string(node.looped) + " back to themselves";
    case Interconnect::kNotTold:
      return "NVLinks are not told: the file lists slots only";
  }
  return "";
}

}  // namespace

NodeFigures node_figures(const NodeDescription& node) {
  NodeFigures figures;
  const bool switched = node.interconnect == Interconnect::kNvSwitch;
  figures.devices =
      static_cast<std::int64_t>(node.gpus.size() + node.nics.size()) + (switched ? 1 : 0);
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    figures.links += (switched ? 2 : 0) + (node.gpus[gpu].nic < 0 ? 0 : 2);
    for (const std::int32_t links : node.nvlinks[gpu]) {
      figures.links += !switched && links > 0 ? 1 : 0;
    }
  }
  const std::int64_t rate = link_rate(node).bytes_per_second;
  figures.nvlink = {rate * node.nvlinks_per_gpu()};
  figures.bisection = {rate * links_between_halves(node)};
  return figures;
}

std::string node_text(const NodeDescription& node, const std::string& name) {
  const NodeFigures figures = node_figures(node);
  const auto gpus = static_cast<std::int64_t>(node.gpus.size());
  const auto nics = static_cast<std::int64_t>(node.nics.size());
  const int sm = node.gpus.front().sm;
  std::string text = name + ": a node, from " + node.form + "\n";
  text += "  " + std::to_string(gpus) + " " + plural("GPU", gpus) +
          (sm == 0 ? "" : " of compute capability " + fixed(sm / 10.0, 1)) + "\n";
  text += "  " + links_text(node) + "\n";
  if (node.nvlinks_per_gpu() > 0 && figures.nvlink.bytes_per_second == 0) {
    text +=
        "  NVLink of a GPU      25 GB/s a link up to Hopper, 50 on Blackwell: which GPU it is, " +
        node.form + " does not tell\n";
  } else if (node.nvlinks_per_gpu() > 0) {
    text += "  NVLink of a GPU      " + bandwidth_text(figures.nvlink) + " (one direction)\n";
    text += "  bisection bandwidth  " + bandwidth_text(figures.bisection) +
            " (one direction, between the two halves of the GPUs)\n";
  }
  text += "  " + std::to_string(nics) + " " + plural("NIC", nics);
  text += nics == 0 ? "\n" : ", " + std::to_string(node.nics_in_use()) + " nearest to a GPU\n";
  text += "  " + pad("GPU", 8) + pad("bus", 16) + pad("CPUs", 6) + pad("NIC", 16) + pad("way", 6) +
          "rate\n";
  for (const NodeDescription::Gpu& gpu : node.gpus) {
    const bool has_nic = gpu.nic >= 0;
    const NodeDescription::Nic nic =
        has_nic ? node.nics[static_cast<std::size_t>(gpu.nic)] : NodeDescription::Nic{"none", {}};
    text += "  " + pad(gpu.name, 8) + pad(gpu.bus.empty() ? "-" : gpu.bus, 16) +
            pad(gpu.domain < 0 ? "-" : std::to_string(gpu.domain), 6) + pad(nic.name, 16) +
            pad(has_nic ? std::string(to_string(gpu.nic_path)) : "-", 6) +
            bandwidth_text(nic.rate) + "\n";
  }
  return text;
}

std::string node_dot(const NodeDescription& node, const std::string& name) {
  std::string text = "graph \"" + name + "\" {\n";
  const bool switched = node.interconnect == Interconnect::kNvSwitch;
  if (switched) {
    text += "  nvs [shape=box,label=\"NVLink switches\"];\n";
  }
  for (std::size_t nic = 0; nic < node.nics.size(); ++nic) {
    text += "  nic" + std::to_string(nic) + " [shape=box,label=\"" + node.nics[nic].name + "\"];\n";
  }
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    const std::string own = "gpu" + std::to_string(gpu);
    text += "  " + own + " [label=\"" + node.gpus[gpu].name + "\"];\n";
    if (switched) {
      text +=
          "  " + own + " -- nvs [label=\"NV" + std::to_string(node.gpus[gpu].nvlinks) + "\"];\n";
    }
    for (std::size_t to = gpu + 1; !switched && to < node.gpus.size(); ++to) {
      if (node.nvlinks[gpu][to] > 0) {
        text += "  " + own + " -- gpu" + std::to_string(to) + " [label=\"NV" +
                std::to_string(node.nvlinks[gpu][to]) + "\"];\n";
      }
    }
    if (node.gpus[gpu].nic >= 0) {
      text += "  " + own + " -- nic" + std::to_string(node.gpus[gpu].nic) + " [label=\"" +
              std::string(to_string(node.gpus[gpu].nic_path)) + "\"];\n";
    }
  }
  return text + "}\n";
}

}  // namespace foretrain
