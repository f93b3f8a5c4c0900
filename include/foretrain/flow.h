#pragma once

#include "foretrain/units.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Transfers that share links max-min fairly (MODEL 4.6). Knows links by number only.
namespace foretrain {

/// A transfer at rate r takes weight * r of the link's capacity.
struct LinkUse {
  std::int32_t link = 0;
  double weight = 1.0;
  bool operator==(const LinkUse&) const = default;
};

/// Rates of transfers that share links: all grow alike from zero; a transfer stops at its limit or
/// where one of its links is full (progressive filling; Bertsekas and Gallager 1992, 6.5.2). Exact
/// but for the rounding of doubles (1e-12).
class FairShare {
 public:
  /// Bytes per second, each above 0.
  explicit FairShare(std::vector<double> capacities);
  ~FairShare();
  FairShare(FairShare&&) noexcept;
  FairShare& operator=(FairShare&&) noexcept;

  /// A transfer that could run at `limit` bytes per second alone (above 0, finite or not). `uses`
  /// names a link at most once. Numbers of ended transfers are used again.
  std::int32_t start(std::span<const LinkUse> uses, double limit);
  void end(std::int32_t transfer);

  /// Solves anew for what is coupled to the transfers started or ended since the last call; those
  /// whose rate changed and all new ones, each once. Valid until the next call.
  std::span<const std::int32_t> share();
  double rate(std::int32_t transfer) const;  ///< of the last share()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Transfers in time: each has what is left of it, and ends when nothing is. A transfer that never
/// shares takes exactly the time it was given.
class Transfers {
 public:
  explicit Transfers(std::vector<double> capacities);
  ~Transfers();
  Transfers(Transfers&&) noexcept;
  Transfers& operator=(Transfers&&) noexcept;

  /// Begins a transfer that takes `alone` at its limit; `tag` comes back when it ends. Times never
  /// go back over the calls of begin and take_ended.
  void begin(
      Instant now, std::span<const LinkUse> uses, double limit, Duration alone, std::int64_t tag);

  /// When the next one ends if nothing else begins, rounded up to the picosecond; unset: none runs.
  std::optional<Instant> next_end();

  /// Tags of the transfers that end at `now`, which next_end() has said. Rates change when a
  /// transfer really ends, within the picosecond before; the next begin comes after this call.
  std::vector<std::int64_t> take_ended(Instant now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretrain
