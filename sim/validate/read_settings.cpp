#include "sim/validate/read_settings.h"

#include "foretrain/simulate.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

/// What a fault of a scenario means for a row, by the place it points to.
struct FaultPlace {
  std::string_view pointer;
  SkipReason reason;
};
constexpr FaultPlace kUnknownValues[] = {
    {"/cluster/topology", SkipReason::kHardware},
    {"/model", SkipReason::kModel},
    {"/training/dtype", SkipReason::kPrecision},
};
constexpr FaultPlace kNotSimulated[] = {
    {"/model", SkipReason::kModel},
    {"/training/dtype", SkipReason::kPrecision},
    {"/schedule", SkipReason::kSchedule},
};

template <std::size_t N>
SkipReason reason_of(const Faults& faults, const FaultPlace (&places)[N], SkipReason otherwise) {
  for (const FaultPlace& place : places) {
    for (const Diagnostic& fault : faults.list) {
      if (fault.pointer.starts_with(place.pointer)) {
        return place.reason;
      }
    }
  }
  return otherwise;
}

/// What is simulated without, rather than not at all, while it is not built.
struct Concession {
  std::string_view pointer, setting, assumed;
};
constexpr Concession kConcessions[] = {
    {"/overlap/tp", "overlap.tp=false", "overlap of tensor communication left out"},
    {"/training/dtype/attention", "training.dtype.attention=bf16", "attention in bf16"},
};

}  // namespace

std::string messages_of(const Faults& faults) {
  std::string text;
  for (const Diagnostic& fault : faults.list) {
    text += (text.empty() ? "" : "; ") + fault.message;
  }
  return text;
}

ReadRow read_settings(std::vector<std::string> settings) {
  ReadRow read;
  for (;;) {
    Expected<Scenario> scenario = parse_scenario("{}", ".", settings);
    if (!scenario) {
      read.reason = reason_of(scenario.error(), kUnknownValues, SkipReason::kIllegal);
      read.detail = messages_of(scenario.error());
      return read;
    }
    const Faults faults{not_simulated(*scenario), FaultKind::kBadInput};
    if (faults.list.empty()) {
      read.scenario = *std::move(scenario);
      return read;
    }
    bool conceded = false;
    for (const Concession& concession : kConcessions) {
      const bool asked =
          std::any_of(faults.list.begin(), faults.list.end(), [&](const Diagnostic& fault) {
            return fault.pointer == concession.pointer;
          });
      const std::string word(concession.assumed);
      if (asked &&
          std::find(read.assumed.begin(), read.assumed.end(), word) == read.assumed.end()) {
        settings.emplace_back(concession.setting);
        read.assumed.push_back(word);
        conceded = true;
      }
    }
    if (!conceded) {
      read.reason = reason_of(faults, kNotSimulated, SkipReason::kParallelism);
      read.detail = messages_of(faults);
      return read;
    }
  }
}

}  // namespace foretrain
