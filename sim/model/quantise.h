#pragma once

#include "foretrain/model.h"

#include <cstdint>

namespace foretrain {

/// How the operands of linear layers become narrow: which copies are made, how many bytes they
/// are and what is read for them (MODEL 2.5). In 16 bits nothing is made and nothing read.
class Quantisation {
 public:
  explicit Quantisation(const BlockContext& context);

  bool on() const { return on_; }

  /// Bytes of so many elements in the narrow format, with the scales of their blocks.
  std::int64_t bytes(std::int64_t elements) const;

  /// Bytes of all copies that the GEMMs of a layer read a tensor from: along its rows and, where
  /// that is another layout or other blocks, along its columns.
  std::int64_t copied_bytes(std::int64_t elements) const { return copies_ * bytes(elements); }

  /// The two copies hold the same numbers, so that a gathered tensor is transposed, not sent twice.
  bool transposes() const { return copies_ == 2 && !blocks_; }

  /// Bytes of the copies made of a tensor that is gathered before its GEMMs read it.
  std::int64_t gathered_bytes(std::int64_t elements) const {
    return transposes() ? bytes(elements) : copied_bytes(elements);
  }

  /// The tensor's largest value is looked for in the tensor itself, a pass before the cast.
  bool scans() const { return scans_; }

  /// A fused norm writes the copies itself: the scale is known before (delayed).
  bool inside_norm() const { return known_scale_; }
  /// A fused norm finds its output's largest value on the way (tensorwise).
  bool norm_scans() const { return scans_ && !blocks_; }

  /// Bytes moved to cast a step's weights, once: every micro-batch multiplies the same copies.
  std::int64_t weight_cast_bytes(std::int64_t parameters) const;
  /// Bytes of the weights as a rank keeps them: the model's own and the copies beside them.
  std::int64_t weight_bytes(std::int64_t parameters) const;

 private:
  bool on_ = false;
  bool native_ = false;       ///< the model's own weights are the narrow ones
  bool known_scale_ = false;  ///< delayed: from the steps before
  bool scans_ = false;
  bool blocks_ = false;  ///< scales of small blocks, which differ between rows and columns
  std::int64_t copies_ = 1;
  std::int64_t wide_bytes_ = 2;      ///< of the model's own weights, when they are not narrow
  std::int64_t sixteenths_of_ = 16;  ///< bytes of 16 elements without scales
  std::int64_t scale_bytes_ = 0;     ///< per 128 elements
};

/// Weights of the linear layers that compute in a narrow type, in a block on one rank.
std::int64_t narrow_weights(const BlockOperators& operators);

}  // namespace foretrain
