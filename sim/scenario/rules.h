#pragma once

#include "sim/scenario/sections.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// Whether a pointer is `outer` or leads below it; whether one of two is the other or leads to it.
bool within(std::string_view pointer, std::string_view outer);
bool related(std::string_view a, std::string_view b);

/// The faults so far, asked before a rule speaks: whether the values it is about are sound.
class Rules {
 public:
  Rules(std::vector<Diagnostic>& faults, const ScenarioWaivers& waived);

  const ScenarioWaivers& waived() const { return waived_; }

  void fault(std::string pointer, std::string message, std::string hint) {
    faults_.push_back({std::move(pointer), std::move(message), std::move(hint)});
  }

  /// Marks a value as unknown without a fault of its own.
  void taint(std::string pointer) { tainted_.push_back(std::move(pointer)); }

  /// None of these values failed to be read (a fault or taint at, above or below it), and no rule
  /// has found fault at or below it.
  bool sound(std::initializer_list<std::string_view> pointers) const;

 private:
  std::vector<Diagnostic>& faults_;
  ScenarioWaivers waived_;
  std::size_t read_faults_;  ///< the first so many come from reading, the rest from rules
  std::vector<std::string> tainted_;
};

/// Whether the schedule can run this pp, vpp and number of micro-batches; sets the vpp that a
/// schedule implies.
void check_schedule(Scenario& scenario, const StatedValues& stated, Rules& rules);
void check_contention(const Scenario& scenario, const StatedValues& stated, Rules& rules);

/// Whether the model can be cut this way: heads over tp, experts over ep, layers over stages (which
/// fills in layers_per_stage), and sizes that can be counted at all.
void check_model(Scenario& scenario, const StatedValues& stated, Rules& rules);

/// Of perturbations: ranks, nodes and loads of experts that the cluster and the model have.
void check_perturbations(const Scenario& scenario, Rules& rules);

}  // namespace foretrain
