#pragma once

#include "foretrain/flow.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace foretrain {

/// An allocation is max-min fair exactly when every transfer is at its limit or has a full link on
/// which none is faster (its bottleneck). That is a property of each transfer and its own links, so
/// a change is followed outwards: the transfers begun are solved with all others held fixed, then
/// whoever has lost its bottleneck, or stands in the way of one that should have it, joins them,
/// until all have one.
struct FairShare::State {
  explicit State(std::vector<double> capacities);

  std::int32_t start(std::span<const LinkUse> uses, double limit);
  void end(std::int32_t number);
  void share();

  static constexpr std::int32_t kLimit = -1;
  struct Sharer {
    std::vector<LinkUse> uses;
    std::vector<std::int32_t> places;  ///< per use: where it stands in the link's list
    double limit = 0;
    bool runs = false;
  };
  /// Of each sharer what its links look at again and again, close together.
  struct Standing {
    double rate = 0;
    std::int32_t bottleneck = kLimit;  ///< a link
    bool open = false;                 ///< among those being solved
    bool frozen = false;               ///< and already at its rate
  };
  struct Entry {
    double weight = 0;
    std::int32_t sharer = 0, use = 0;
  };
  struct Shared {
    double capacity = 0;
    std::vector<Entry> entries;
    // While solving: what is left for the open ones that still grow, their weight and number.
    double free = 0, weight = 0;
    std::int32_t growing = 0;
    double level() const { return free > 0 ? free / weight : 0.0; }
    bool touched = false;
  };

  std::vector<Sharer> sharers;
  std::vector<Standing> standings;  ///< by sharer
  std::vector<Shared> links;
  std::vector<std::int32_t> changed;  ///< by the last share()

 private:
  void open(std::int32_t number);
  void touch(std::int32_t link);
  void clear_links();
  void solve();
  void freeze(std::int32_t number, double level, std::int32_t bottleneck);
  void freeze_link(std::int32_t link, double level);
  /// Opens those on the link that the last solution leaves without a bottleneck, or that keep an
  /// open one from its own.
  void admit(std::int32_t link);

  std::vector<std::int32_t> unused_;              ///< numbers to give again
  std::vector<std::int32_t> begun_;               ///< since the last share()
  std::vector<std::int32_t> open_;                ///< sharers being solved
  std::vector<std::int32_t> touched_;             ///< links they use, and those of ended ones
  std::vector<double> before_;                    ///< per open one: its rate when it was opened
  using Level = std::pair<double, std::int32_t>;  ///< (rate, link or sharer)
  std::vector<Level> levels_, limits_;
};

}  // namespace foretrain
