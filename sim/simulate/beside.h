#pragma once

#include "foretrain/timeline.h"
#include "sim/simulate/contention.h"

#include <cstdint>
#include <span>
#include <vector>

namespace foretrain {

/// What the tasks of a call took, and what of it was lost to what ran beside them; picoseconds,
/// summed over instances and the ranks they stand for.
struct Loss {
  double time = 0, lost = 0;
};
struct CallLoss {
  Loss kernels, transfers;
};

/// Adds up what instances lose.
class Beside {
 public:
  /// `settled`: blocks, by index, whose kernels bear what runs beside them already.
  Beside(const ContentionModel& model, const Program& program, std::vector<bool> settled);

  /// All spans of one instance in a step, and the time from its step to the next.
  void add(std::span<const Span> spans, Duration period);
  const std::vector<std::vector<CallLoss>>& losses() const {
    return losses_;
  }  ///< [template][call]

 private:
  /// A kernel or transfer of the instance, and what it takes.
  struct Running {
    const Task* task = nullptr;
    Loss* loss = nullptr;  ///< null: it bears what is beside it already
    bool kernel = false;
    Pressure pressure;
    std::int64_t begin = 0, end = 0;
  };
  struct Edge {
    std::int64_t time = 0;
    bool begins = false;
    std::int32_t running = 0;
  };
  void list(std::span<const Span> spans);
  void enter(const Running& running);
  void carry_over(std::int64_t period);
  void turn(const Edge& edge);
  void pass(double time);

  const ContentionModel& model_;
  const Program& program_;
  std::vector<bool> settled_;
  std::vector<std::vector<CallLoss>> losses_;
  // Of the instance being added.
  std::vector<Running> all_;
  std::vector<Edge> edges_;
  const Running* kernel_ = nullptr;
  std::vector<std::int32_t> transfers_;  ///< that run now
  Pressure pressure_;                    ///< theirs
};

}  // namespace foretrain
