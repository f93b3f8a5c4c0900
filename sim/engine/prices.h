#pragma once

#include "foretrain/program.h"
#include "sim/engine/loops.h"
#include "sim/engine/plan.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// What tasks take for the instances of each cohort in the current step. While all instances of a
/// cohort share their factors there is one duration per task of a block, kept; else one per
/// instance, computed when asked.
class Prices {
 public:
  Prices(const Program& program, const ProgramPlan& plan);

  /// Takes the factors of a measured step; negative: warm-up.
  void set_step(std::int64_t measured_step);

  bool uniform(std::int32_t cohort) const { return cohorts_[cohort].table >= 0; }
  /// Of a uniform cohort, in a call.
  std::int64_t one(std::int32_t cohort, const CallPlan& call, const BlockTask& task) {
    Table& table = tables_[cohorts_[cohort].table];
    std::int64_t& duration = table.durations[task.price];
    if (duration < 0) {
      duration = duration_of(task.task->work, table.factors).count();
    }
    return stretched(duration, stretch_of(call.stretches, *task.task));
  }
  /// Of any cohort, one per instance.
  void each(std::int32_t cohort,
            const CallPlan& call,
            const BlockTask& task,
            std::int64_t* durations);

 private:
  struct Table {
    Factors factors{};
    Times durations;  ///< per task of a block; -1: not asked yet
  };
  struct CohortPrices {
    std::int32_t table = -1;
    Factors largest{};
    std::array<Times, kResourceCount> factors;  ///< per resource, per instance
  };
  static void unstretched(const CohortPrices& prices,
                          const Work& work,
                          std::size_t n,
                          std::int64_t* durations);
  void set_cohort(std::int32_t cohort, const std::vector<Factors>& sets);
  std::int32_t table_of(const Factors& factors);

  const Program& program_;
  const ProgramPlan& plan_;
  bool windows_ = false;
  bool fresh_ = true;
  std::vector<Table> tables_;
  std::vector<CohortPrices> cohorts_;
};

}  // namespace foretrain
