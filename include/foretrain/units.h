#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <ratio>

/// Quantities with their physical units. Time is integer picoseconds: no run depends on the order
/// of floating-point sums. Range of Duration: 106 days.
namespace foretrain {

__extension__ using Int128 = __int128;

using Duration = std::chrono::duration<std::int64_t, std::pico>;

/// The simulated clock. It has no now(): time exists only inside a run.
struct SimClock {
  using rep = std::int64_t;
  using period = std::pico;
  using duration = Duration;
  using time_point = std::chrono::time_point<SimClock, Duration>;
  static constexpr bool is_steady = true;
};
using Instant = SimClock::time_point;

/// Bytes of memory or of a message.
struct Bytes {
  std::int64_t value = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    value -= other.value;
    return *this;
  }
};
constexpr Bytes operator+(Bytes a, Bytes b) {
  return {a.value + b.value};
}
constexpr Bytes operator-(Bytes a, Bytes b) {
  return {a.value - b.value};
}
constexpr Bytes operator*(Bytes a, std::int64_t n) {
  return {a.value * n};
}
constexpr Bytes operator*(std::int64_t n, Bytes a) {
  return {a.value * n};
}

/// Floating-point operations of one operator. Totals over a step exceed int64: sum them in Int128.
struct Flops {
  std::int64_t value = 0;
  constexpr auto operator<=>(const Flops&) const = default;
  constexpr Flops& operator+=(Flops other) {
    value += other.value;
    return *this;
  }
};
constexpr Flops operator+(Flops a, Flops b) {
  return {a.value + b.value};
}
constexpr Flops operator*(Flops a, std::int64_t n) {
  return {a.value * n};
}

/// Bytes per second, one direction.
struct Bandwidth {
  std::int64_t bytes_per_second = 0;
  constexpr auto operator<=>(const Bandwidth&) const = default;
};

/// Floating-point operations per second.
struct FlopRate {
  std::int64_t flops_per_second = 0;
  constexpr auto operator<=>(const FlopRate&) const = default;
};

/// The one rounding rule of the project: work / rate, rounded up to the next picosecond. Zero work
/// takes zero time; nothing ever finishes early. `rate` must be positive.
constexpr Duration time_for(std::int64_t work, std::int64_t rate_per_second) {
  const Int128 picoseconds_per_second = 1'000'000'000'000;
  const Int128 scaled = static_cast<Int128>(work) * picoseconds_per_second;
  return Duration{static_cast<std::int64_t>((scaled + rate_per_second - 1) / rate_per_second)};
}
constexpr Duration operator/(Bytes bytes, Bandwidth bandwidth) {
  return time_for(bytes.value, bandwidth.bytes_per_second);
}
constexpr Duration operator/(Flops flops, FlopRate rate) {
  return time_for(flops.value, rate.flops_per_second);
}

/// Seconds as a double, for reports only.
constexpr double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e12;
}

}  // namespace foretrain
