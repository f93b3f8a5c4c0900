#pragma once

#include <cstdint>
#include <vector>

namespace foretrain {

/// Ends the warm-up: when the carried state of a step equals that of the step before, or at the
/// limit.
class WarmUp {
 public:
  explicit WarmUp(int limit) : limit_(limit < 1 ? 1 : limit) {}

  /// Takes the state after the next step; true: measuring may start.
  bool settled(std::vector<std::int64_t> state) {
    ++steps_;
    const bool repeats = steps_ > 1 && state == last_;
    last_ = std::move(state);
    return repeats || steps_ >= limit_;
  }
  int steps() const { return steps_; }

 private:
  int limit_;
  int steps_ = 0;
  std::vector<std::int64_t> last_;
};

}  // namespace foretrain
