#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// Which group kinds and peer slots each template's tasks use; the rest couples nobody.
struct TemplateUse {
  std::vector<bool> kinds;  ///< per group kind
  std::array<bool, kPeerSlots> slots{};
};
std::vector<TemplateUse> template_uses(const Program& program);

/// Classes of instances and of links, each numbered from 0.
struct Partition {
  std::vector<std::int32_t> instances;
  std::vector<std::int32_t> links;
};

/// The coarsest partition of the instances that is finer than `colours` and stable: instances of
/// one class see the same set of classes in each group they use and the same class behind each peer
/// they use, and their transfers run over as many links of each class; links of one class carry the
/// same, with the same weights. Classes are numbered by their lowest instance or link.
Partition stable_partition(const Program& program, std::vector<std::int32_t> colours);

}  // namespace foretrain
