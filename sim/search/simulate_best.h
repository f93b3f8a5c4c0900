#pragma once

#include "foretrain/search.h"

#include <vector>

namespace foretrain {

/// Simulates the layouts at these places of the list, in parallel, and fills in what came of it.
void simulate_layouts(const TrainingJob& job,
                      const SearchOptions& options,
                      const std::vector<std::size_t>& places,
                      std::vector<RankedLayout>& layouts);

}  // namespace foretrain
