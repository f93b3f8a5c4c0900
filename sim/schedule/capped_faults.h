#pragma once

#include "foretrain/diagnostic.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace foretrain {

/// Faults of a schedule, the first twenty and how many more there are.
class CappedFaults {
 public:
  bool empty() const { return kept_.empty(); }
  void add(std::string message, std::string hint) {
    if (kept_.size() < kMost) {
      kept_.push_back({"/schedule", std::move(message), std::move(hint)});
    } else {
      ++more_;
    }
  }
  std::vector<Diagnostic> take() {
    if (more_ > 0) {
      kept_.push_back({"/schedule", "and " + std::to_string(more_) + " more", ""});
    }
    return std::move(kept_);
  }

 private:
  static constexpr std::size_t kMost = 20;
  std::vector<Diagnostic> kept_;
  std::size_t more_ = 0;
};

}  // namespace foretrain
