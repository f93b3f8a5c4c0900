#include "sim/report/exact_parts.h"

#include "sim/base/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foretrain {
namespace {

struct GridPart {
  Int128 units = 0;      ///< whole grid steps, rounded down
  Int128 remainder = 0;  ///< what rounding down left, in 1e-12 grid steps
  std::size_t index = 0;
};

constexpr Int128 kPicosecondsPerSecond = 1'000'000'000'000;

GridPart on_grid(Duration part, int exponent, std::size_t index) {
  const Int128 scaled = static_cast<Int128>(part.count()) * (static_cast<Int128>(1) << exponent);
  Int128 units = scaled / kPicosecondsPerSecond;
  Int128 remainder = scaled % kPicosecondsPerSecond;
  if (remainder < 0) {
    units -= 1;
    remainder += kPicosecondsPerSecond;
  }
  return {units, remainder, index};
}

/// Gives the `missing` grid steps to the parts that lost most by rounding down.
void share_out(std::vector<GridPart>& parts, Int128 missing) {
  std::sort(parts.begin(), parts.end(), [](const GridPart& a, const GridPart& b) {
    return a.remainder != b.remainder ? a.remainder > b.remainder : a.index < b.index;
  });
  for (std::size_t i = 0; i < parts.size() && missing > 0; ++i, --missing) {
    parts[i].units += 1;
  }
}

}  // namespace

std::vector<double> exact_seconds(std::span<const Duration> parts, Duration total) {
  std::vector<double> result(parts.size(), 0.0);
  const Duration sum = std::accumulate(parts.begin(), parts.end(), Duration{0});
  FORETRAIN_CHECK(sum == total,
                  "parts add up to %lld ps, not %lld ps",
                  static_cast<long long>(sum.count()),
                  static_cast<long long>(total.count()));
  const double whole = seconds(total);
  if (!(whole > 0)) {
    return result;
  }
  constexpr int kMantissaBits = 53;
  const int exponent = kMantissaBits - 1 - std::ilogb(whole);
  std::vector<GridPart> grid;
  Int128 units = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    grid.push_back(on_grid(parts[i], exponent, i));
    units += grid.back().units;
  }
  share_out(grid, static_cast<Int128>(std::scalbn(whole, exponent)) - units);
  for (const GridPart& part : grid) {
    result[part.index] = std::scalbn(static_cast<double>(part.units), -exponent);
  }
  return result;
}

}  // namespace foretrain
