#pragma once

#include "foretrain/mesh.h"

#include <string>
#include <vector>

namespace foretrain {

/// Largest world a mesh may describe, several times the largest cluster planned anywhere.
inline constexpr std::int64_t kMaxRanks = 1 << 20;

/// "tp-cp-ep-dp-pp" -> its words, innermost first.
std::vector<std::string> split_order(const std::string& order);

/// Everything wrong with a mesh's size, with JSON pointers; empty when it is legal.
std::vector<Diagnostic> mesh_faults(const MeshSize& size);

}  // namespace foretrain
