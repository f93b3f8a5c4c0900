#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// The one fault that input can cause: sizes so large that times do not fit.
inline constexpr char kStepTooLong[] = "a step could outlast the range of a Duration";

/// Where a fault is: "template 3 call 7". Made into text only when there is a fault.
struct FaultPlace {
  std::string_view what;
  std::size_t index = 0;
  std::string_view inner = {};
  std::size_t inner_index = 0;
  std::string text() const;
};

/// Collects what is wrong with a program, up to a limit: a program of many ranks repeats itself.
class FaultList {
 public:
  static constexpr std::size_t kLimit = 100;

  void add(std::string fault) {
    if (faults_.size() < kLimit) {
      faults_.push_back(std::move(fault));
    }
  }
  void add(const FaultPlace& place, std::string_view fault) {
    add(place.text() + ": " + std::string(fault));
  }
  /// Adds unless 0 <= index < size.
  bool in_range(std::int64_t index,
                std::size_t size,
                const FaultPlace& place,
                std::string_view what);
  bool empty() const { return faults_.empty(); }
  std::vector<std::string> take() { return std::move(faults_); }

 private:
  std::vector<std::string> faults_;
};

/// Every index of the program points at something. The other checks rely on it.
void find_index_faults(const Program& program, FaultList& faults);
/// Links and paths are of this program.
void find_link_faults(const Program& program, FaultList& faults);
/// Dependencies and streams of each template leave an order; memory balances; durations fit.
void find_list_faults(const Program& program, FaultList& faults);
/// Collectives and messages of the instances meet.
void find_meeting_faults(const Program& program, FaultList& faults);

}  // namespace foretrain
