#include "sim/base/random.h"

#include <cmath>

namespace foretrain {
namespace {

std::uint64_t mix(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

double tail(double q) {
  const double numerator =
      ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
        2.549732539343734e+00) *
           q +
       4.374664141464968e+00) *
          q +
      2.938163982698783e+00;
  const double denominator =
      (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
       3.754408661907416e+00) *
          q +
      1.0;
  return numerator / denominator;
}

double inverse_normal(double p) {
  constexpr double kLow = 0.02425;
  if (p < kLow) {
    return tail(std::sqrt(-2 * std::log(p)));
  }
  if (p > 1 - kLow) {
    return -tail(std::sqrt(-2 * std::log(1 - p)));
  }
  const double q = p - 0.5;
  const double r = q * q;
  const double numerator =
      (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
         1.383577518672690e+02) *
            r -
        3.066479806614716e+01) *
           r +
       2.506628277459239e+00) *
      q;
  const double denominator =
      ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
        6.680131188771972e+01) *
           r -
       1.328068155288572e+01) *
          r +
      1.0;
  return numerator / denominator;
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index) {
  return mix(mix(mix(seed) ^ purpose) ^ index);
}

double random_uniform(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index) {
  const std::uint64_t top = random_bits(seed, purpose, index) >> 11U;
  return (static_cast<double>(top) + 0.5) * 0x1p-53;
}

double random_normal(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index) {
  return inverse_normal(random_uniform(seed, purpose, index));
}

}  // namespace foretrain
