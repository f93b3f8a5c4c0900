#pragma once

#include "foretrain/flow.h"

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace foretrain {

/// An allocation is max-min fair exactly when every transfer is at its limit or has a full link on
/// which none is faster (its bottleneck). That is a property of each transfer and its own links, so
/// a change is followed outwards: the transfers begun are solved with all others held fixed, then
/// whoever has lost its bottleneck, or stands in the way of one that should have it, joins them,
/// until all have one. One whose links have room for it at its limit begins and ends alone.
struct FairShare::State {
  explicit State(std::vector<double> capacities);

  std::int32_t start(std::span<const LinkUse> uses, double limit);
  void end(std::int32_t number);
  void share();

  static constexpr std::int32_t kLimit = -1;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Use {
    double weight = 0;
    std::int32_t link = 0, place = 0;  ///< place: in the link's entries
  };
  struct Sharer {
    std::vector<Use> uses;
    double limit = 0;
    bool runs = false;
  };
  /// Of each sharer what its links look at again and again, close together.
  struct Standing {
    double rate = 0;
    std::int32_t bottleneck = kLimit;  ///< a link
    bool begun = false;                ///< since the last share()
    bool open = false;                 ///< among those being solved; the others are closed
    bool frozen = false;               ///< and already at its rate
  };
  struct Entry {
    double weight = 0;
    std::int32_t sharer = 0, use = 0;
  };
  struct Shared {
    double capacity = 0;
    double load = 0;     ///< of the closed ones
    double fastest = 0;  ///< no closed one is faster
    std::vector<Entry> entries;
    std::int32_t changes = 0;  ///< of `load` since it was summed
    std::int32_t held = 0;     ///< closed ones whose bottleneck it is
    // While solving:
    std::int32_t opened = 0;
    bool touched = false;
    double free = 0;    ///< what all that are not growing leave
    double weight = 0;  ///< of those
    std::int32_t growing = 0;
    double level = 0;        ///< at which it was last full: the rate of those held
    double queued = kNever;  ///< its level in levels_
    std::vector<Entry> open;
  };

  std::vector<Sharer> sharers;
  std::vector<Standing> standings;  ///< by sharer
  std::vector<Shared> links;
  std::vector<std::int32_t> changed;  ///< by the last share()

 private:
  bool fits(const Sharer& sharer) const;
  void run_at_limit(std::int32_t number);
  void open(std::int32_t number);
  void queue_link(std::int32_t link);
  void open_held(std::int32_t link);
  void open_vacated();
  bool open_faster(std::int32_t link, double level);
  void close_all();
  void touch(std::int32_t link);
  void add_load(Shared& link, double by);
  static double next_level(const Shared& link);
  void solve();
  void freeze(std::int32_t number, double level, std::int32_t bottleneck);
  void fill(std::int32_t link, double level);

  std::vector<std::int32_t> unused_;              ///< numbers to give again
  std::vector<std::int32_t> begun_;               ///< since the last share()
  std::vector<std::int32_t> open_;                ///< sharers being solved
  std::vector<std::int32_t> touched_;             ///< links they use, and those of ended ones
  std::vector<double> before_;                    ///< per open one: its rate when it was opened
  using Level = std::pair<double, std::int32_t>;  ///< (rate, link or sharer)
  std::vector<Level> levels_, limits_;            ///< heaps, lowest first
  std::int32_t growing_ = 0;                      ///< open ones not frozen
  std::vector<std::int32_t> vacated_;             ///< links where nobody grows any more
};

}  // namespace foretrain
