#pragma once

#include <cstdint>
#include <vector>

namespace foretrain {

/// Layers of each of `stages` virtual stages: as even as can be, what is left over in the middle;
/// then with one layer fewer on the first, on the last, and on both. Each list once.
std::vector<std::vector<std::int64_t>> stage_lists(std::int64_t layers, std::int64_t stages);

}  // namespace foretrain
