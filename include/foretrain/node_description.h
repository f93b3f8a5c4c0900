#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// One machine as nvidia-smi or NCCL describes it: GPUs, NVLinks, NICs and how near they are.
namespace foretrain {

/// What a transfer between two devices crosses, the nearest first; words of `nvidia-smi topo -m`.
enum class PciePath {
  kPix,   ///< at most one PCIe bridge
  kPxb,   ///< several, and no host bridge
  kPhb,   ///< a host bridge
  kNode,  ///< between host bridges of one NUMA node
  kSys,   ///< between NUMA nodes
};

struct NodeDescription {
  struct Gpu {
    std::string name;          ///< "GPU0"
    std::string bus;           ///< "0000:1b:00.0"; may be empty
    int sm = 0;                ///< compute capability, 90 for 9.0; 0: not told
    Bandwidth pcie;            ///< of its slot, one direction, before framing; 0: not told
    std::int32_t nvlinks = 0;  ///< to all peers or switches together
    std::int32_t domain = -1;  ///< of CPUs that are near; -1: not told
    /// Best NIC and the way to it: the nearest class, there the one that fewest GPUs before it
    /// took; -1: none.
    std::int32_t nic = -1;
    PciePath nic_path = PciePath::kSys;
    bool operator==(const Gpu&) const = default;
  };
  struct Nic {
    std::string name;  ///< "mlx5_0"
    Bandwidth rate;    ///< one direction; 0: not told
    bool operator==(const Nic&) const = default;
  };
  enum class Interconnect {
    kNvSwitch,  ///< each GPU reaches every other over all its NVLinks
    kMesh,      ///< NVLinks lead straight to other GPUs, from every GPU to every other
    kPartial,   ///< NVLinks, but not between all pairs
    kPcie,      ///< no NVLink
    kNotTold,   ///< a static file of NCCL lists slots only
  };

  std::string form;  ///< "nvidia-smi topo -m" or "NCCL topology"
  Interconnect interconnect = Interconnect::kPcie;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  /// NVLinks between two GPUs, by GPU and GPU; with a switch all of them are between each pair.
  std::vector<std::vector<std::int32_t>> nvlinks;
  std::int32_t domains = 0;  ///< of CPUs
  std::int32_t looped = 0;   ///< GPUs with NVLinks to themselves, which are left out

  std::int32_t nics_in_use() const;  ///< nearest to at least one GPU
  /// The slowest of them, one direction; 0: not told.
  Bandwidth nic_rate() const;
  /// Fewest NVLinks of a GPU.
  std::int32_t nvlinks_per_gpu() const;
  bool operator==(const NodeDescription&) const = default;
};

/// One NVLink, one direction, by compute capability: 20 GB/s on Pascal, 25 from Volta to Hopper, 50
/// on Blackwell (data sheets: 160, 300, 600, 900 and 1800 GB/s both ways over 4, 6, 12, 18 and 18
/// links); 0: not known.
Bandwidth nvlink_rate(int sm);

/// The matrix of `nvidia-smi topo -m`, with or without its legends, colours and affinities. It must
/// be whole and symmetric. All faults at once, by line.
Expected<NodeDescription> parse_topo_matrix(std::string_view text);
bool is_topo_matrix(std::string_view text);

/// NCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE). Document types and their entities
/// are refused.
Expected<NodeDescription> parse_nccl_topology(std::string_view text);
bool is_nccl_topology(std::string_view text);

std::string_view to_string(PciePath path);
std::string_view to_string(NodeDescription::Interconnect interconnect);

}  // namespace foretrain
