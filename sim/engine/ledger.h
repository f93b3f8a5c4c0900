#pragma once

#include "foretrain/program.h"
#include "foretrain/timeline.h"
#include "sim/engine/loops.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace foretrain {

/// Keeps the accounts of one cohort while the dataflow evaluator runs (RankAccount says the rules).
/// The primary stream's ledger is reset at each step end of the warm-up, so it holds exactly what
/// came after the last of them; it closes at the last measured step's end.
class Ledger {
 public:
  Ledger(const Program& program, std::size_t instances, std::int32_t list_length);

  /// What a primary task may have waited for, besides its stream.
  struct Cause {
    const Times* end = nullptr;
    std::int32_t stream = 0;
  };

  void begin_step(std::int64_t step, bool measured, bool last);
  /// A primary task starts at `start`, the one before ended at `before`.
  void gap(const Times& before, const Times& start, const std::vector<Cause>& causes);
  /// Primary idle time that has no cause but peers: later - earlier.
  void idle(const Times& earlier, const Times& later) { note_idle(earlier, later); }
  void busy(std::int32_t account, std::int64_t duration);
  void busy(std::int32_t account, const Times& durations);
  void step_end(const Times& end);

  /// A transfer on a stream of role kCollective.
  void transfer(std::int32_t account, std::int64_t duration);
  void transfer(std::int32_t account, const Times& durations);
  void member_wait(std::int32_t account, const Times& arrival, const Times& begin);
  void sent(std::int32_t account, std::int64_t bytes);
  void send(std::int64_t duration, std::int64_t bytes);
  void send(const Times& durations, std::int64_t bytes);
  void receive(std::int64_t bytes);

  /// Remembers a transfer that a gap of the primary stream may fall into: from end - durations
  /// (or end - duration) to end. Forgets those before the primary clock.
  void remember(std::int32_t stream,
                std::int32_t task,
                const Times& begin,
                const Times& end,
                const Times& primary_clock);
  /// Everything on the stream up to the task lies behind the primary clock of every instance.
  void forget(std::int32_t stream, std::int32_t task, bool previous_step);

  RankAccount account(std::size_t instance) const;

 private:
  struct Sum {  ///< a part all instances share and a part of their own
    std::int64_t shared = 0;
    Times own;
    std::int64_t at(std::size_t i) const { return shared + (own.empty() ? 0 : own[i]); }
    void clear();
    Times& each(std::size_t n);
  };
  struct Transfer {
    std::int64_t task = 0;  ///< step * list length + template-wide index
    Times begin, end;
  };
  void note_idle(const Times& earlier, const Times& later);
  std::int64_t covered(std::int32_t stream,
                       std::size_t i,
                       std::int64_t from,
                       std::int64_t to) const;
  void drop_front(std::deque<Transfer>& history);

  const Program& program_;
  std::size_t instances_;
  std::int64_t list_length_;
  std::int64_t step_ = 0;
  bool measured_ = false;
  bool last_ = false;
  bool closed_ = false;
  Times window_start_, window_end_;
  std::vector<Sum> busy_, exposed_, transfer_, member_wait_;
  std::vector<std::int64_t> bytes_;
  Sum host_, idle_, point_to_point_;
  std::int64_t point_to_point_bytes_ = 0, received_bytes_ = 0;
  std::vector<std::deque<Transfer>> history_;  ///< per stream, in time order
  std::vector<Transfer> spare_;
};

}  // namespace foretrain
