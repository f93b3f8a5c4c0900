#pragma once

#include <cstdint>

/// Counter-based random numbers: a draw is a pure function of (seed, purpose, indices), so that
/// adding a rank never reshuffles another's draws.
namespace foretrain {

/// 64 well-mixed bits of a key (SplitMix64 finaliser over the words; Steele et al., OOPSLA 2014).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index);

/// Uniform in (0, 1), 53 bits.
double random_uniform(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index);

/// Standard normal by the inverse distribution function (Acklam's rational approximation, relative
/// error 1.15e-9).
double random_normal(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index);

}  // namespace foretrain
