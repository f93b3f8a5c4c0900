#pragma once

#include "foretrain/search.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// Every combination of the degrees and axes of a search, numbered as nested loops would, tp
/// outermost: equals in rank keep this order. The axes must be legal.
class Combinations {
 public:
  Combinations(const ModelConfig& model, const SearchAxes& axes);

  std::int64_t count() const { return count_; }

  /// The layout of a number; dp is what is left of `gpus`, 0 where that is not whole. Every layer
  /// recomputed is their number, unless that stands on the axis too.
  Layout at(std::int64_t number, std::int64_t gpus) const;

  static const std::vector<std::int64_t>& tp();
  static const std::vector<std::int64_t>& cp();
  static const std::vector<std::int64_t>& pp();

 private:
  void fit_schedule(Layout& layout) const;

  const SearchAxes& axes_;
  std::int64_t layers_ = 0;
  std::vector<std::int64_t> ep_;
  std::int64_t count_ = 1;
};

}  // namespace foretrain
