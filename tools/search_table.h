#pragma once

#include "foretrain/search.h"

#include <string>
#include <vector>

namespace foretrain {

/// Layouts as a table: rank, degrees, what the closed form says and, where asked, the simulation
/// beside it. Axes that are everywhere the default have no column; columns move together where the
/// page is narrow, and axes that still find no room stand below.
std::string search_table(const std::vector<const RankedLayout*>& rows, bool simulated, int width);

}  // namespace foretrain
