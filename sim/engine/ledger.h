#pragma once

#include "foretrain/program.h"
#include "foretrain/timeline.h"
#include "sim/engine/loops.h"
#include "sim/engine/transfer_history.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// Keeps the accounts of one cohort while the dataflow evaluator runs (RankAccount says the rules).
/// The primary stream's ledger is reset at each step end of the warm-up, so it holds exactly what
/// came after the last of them; it closes at the last measured step's end.
class Ledger {
 public:
  Ledger(const Program& program, std::size_t instances);

  /// Times and durations are given as one value per instance.
  using Each = const std::int64_t*;
  /// What a primary task may have waited for, besides its stream.
  struct Cause {
    Each end = nullptr;
    std::int32_t stream = 0;
  };
  /// What a task took: one duration per instance, or (null) the same for all.
  struct Spent {
    Each each = nullptr;
    std::int64_t all = 0;
  };

  void begin_step(bool measured, bool last);
  /// A primary task starts at `start`, the one before ended at `before`.
  void gap(Each before, Each start, const std::vector<Cause>& causes);
  /// The same for one instance; `stream`: the lowest it waited for last, -1: the host.
  void gap_of(std::size_t i, std::int64_t from, std::int64_t to, std::int32_t stream);
  /// Primary idle time that has no cause but peers: later - earlier.
  void idle(Each earlier, Each later);
  void busy(std::int32_t account, const Spent& spent) {
    if (!closed_) {
      busy_[account].add_spent(spent, instances_);
    }
  }
  void step_end(const Times& end);

  /// A transfer on a stream of role kCollective.
  void transfer(std::int32_t account, const Spent& spent) {
    if (measured_) {
      transfer_[account].add_spent(spent, instances_);
    }
  }
  void member_wait(std::int32_t account, Each arrival, Each begin);
  void sent(std::int32_t account, std::int64_t bytes) {
    if (measured_) {
      bytes_[account] += bytes;
    }
  }
  void send(const Spent& spent, std::int64_t bytes);
  void receive(std::int64_t bytes);

  /// Remembers a transfer that a gap of the primary stream may fall into. Forgets those before the
  /// primary clock.
  void remember(std::int32_t stream, Each begin, Each end, Each primary_clock);

  RankAccount account(std::size_t instance) const;

 private:
  struct Sum {  ///< a part all instances share and a part of their own
    std::int64_t shared = 0;
    Times own;
    std::int64_t at(std::size_t i) const { return shared + (own.empty() ? 0 : own[i]); }
    void clear();
    void add_spent(const Spent& spent, std::size_t n) {
      if (spent.each == nullptr) {
        shared += spent.all;
      } else {
        add(each(n), spent.each, n);
      }
    }
    std::int64_t* each(std::size_t n);
  };
  std::int64_t covered(std::int32_t stream,
                       std::size_t i,
                       std::int64_t from,
                       std::int64_t to) const;
  const Program& program_;
  std::size_t instances_;
  bool measured_ = false;
  bool last_ = false;
  bool closed_ = false;
  Times window_start_, window_end_;
  std::vector<Sum> busy_, exposed_, transfer_, member_wait_;
  std::vector<std::int64_t> bytes_;
  Sum host_, idle_, point_to_point_;
  std::int64_t point_to_point_bytes_ = 0, received_bytes_ = 0;
  std::vector<TransferHistory> history_;  ///< per stream
};

}  // namespace foretrain
