#include "foretrain/estimate.h"
#include "sim/scenario/sections.h"

namespace foretrain {

std::string to_string(const Layout& layout) {
  const Layout usual;
  std::string text;
  const auto add = [&text](const std::string& item) { text += (text.empty() ? "" : " · ") + item; };
  add("tp " + std::to_string(layout.tp));
  add("cp " + std::to_string(layout.cp));
  add("pp " + std::to_string(layout.pp));
  add("dp " + std::to_string(layout.dp));
  if (layout.vpp > 1) {
    add("vpp " + std::to_string(layout.vpp));
  }
  if (layout.ep > 1) {
    add("ep " + std::to_string(layout.ep));
  }
  if (layout.etp > 1) {
    add("etp " + std::to_string(layout.etp));
  }
  if (layout.micro_batch_size > 1) {
    add("micro-batch " + std::to_string(layout.micro_batch_size));
  }
  if (layout.sharding != usual.sharding) {
    add(layout.sharding == Sharding::kNone
            ? std::string("not sharded")
            : std::string(kShardings[static_cast<std::size_t>(layout.sharding)]));
  }
  if (layout.schedule != usual.schedule) {
    add(layout.schedule +
        (layout.slices > 1 ? " of " + std::to_string(layout.slices) + " slices" : ""));
  }
  if (layout.order != usual.order) {
    add(layout.order);
  }
  return text;
}

}  // namespace foretrain
