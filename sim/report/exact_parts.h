#pragma once

#include "foretrain/units.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace foretrain {

/// Seconds of each part as doubles that add up to seconds(total) exactly, in any order, although
/// each is a rounded decimal: every part is put on the grid of total's last bit, where sums are
/// exact. A part is off by less than that bit, half a picosecond for a total of 4,096 s.
/// The parts must add up to `total` as integers; zero stays zero.
std::vector<double> exact_seconds(std::span<const Duration> parts, Duration total);

}  // namespace foretrain
