#include "foretrain/discover.h"
#include "foretrain/node_description.h"
#include "sim/base/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

template <typename T>
bool answered(const foretrain::Expected<T>& read) {
  FORETRAIN_CHECK(read || !read.error().list.empty(), "a refusal without a reason");
  return read.has_value();
}

void check_node(const foretrain::NodeDescription& node) {
  FORETRAIN_CHECK(!node.gpus.empty(), "a node without a GPU");
  FORETRAIN_CHECK(node.nvlinks.size() == node.gpus.size(), "NVLinks of other GPUs");
  for (const foretrain::NodeDescription::Gpu& gpu : node.gpus) {
    FORETRAIN_CHECK(gpu.nic < static_cast<std::int32_t>(node.nics.size()), "a NIC of none");
  }
}

}  // namespace

/// Rule: any text is refused with a reason or read into something whose figures can be told.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto fabric = foretrain::parse_ibnetdiscover(text); answered(fabric)) {
    const foretrain::FabricSummary summary = foretrain::summarise(*fabric);
    FORETRAIN_CHECK(summary.bisection.bytes_per_second >= 0, "a negative rate");
    FORETRAIN_CHECK(!foretrain::fabric_dot(*fabric, "fuzz").empty(), "no picture");
  }
  if (const auto node = foretrain::parse_topo_matrix(text); answered(node)) {
    check_node(*node);
  }
  if (const auto node = foretrain::parse_nccl_topology(text); answered(node)) {
    check_node(*node);
  }
  return 0;
}
