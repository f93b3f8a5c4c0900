#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// Gives a folded program its links, one per class that carries something, and its paths. What a
/// class's transfers put on one link of a class, all of them together, is the weight of the one
/// transfer that stands for them. `link_classes`: per link of the full program; `became`: the
/// folded group of each group, [kind][group], -1: none.
void fold_links(const Program& full,
                const std::vector<std::int32_t>& link_classes,
                const std::vector<std::vector<std::int32_t>>& became,
                FoldedProgram& folded);

}  // namespace foretrain
