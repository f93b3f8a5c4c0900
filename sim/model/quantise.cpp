#include "sim/model/quantise.h"

namespace foretrain {

Quantisation::Quantisation(const BlockContext& context) {
  const PrecisionSpec& types = context.precision;
  on_ = is_narrow(types.compute);
  native_ = is_narrow(types.params);
  wide_bytes_ = bytes_per_element(types.params);
  if (!on_)
    return;
  known_scale_ = types.recipe == "delayed";
  scans_ = types.recipe == "tensorwise" || types.recipe == "nvfp4";
  blocks_ = types.recipe != "delayed" && types.recipe != "tensorwise";
  copies_ = blocks_ || context.transposed_operands ? 2 : 1;
  // A 32-bit scale per 1 x 128 (blockwise), 8 bits per 32 (MX), 8 bits per 16 (NVFP4).
  scale_bytes_ = !blocks_ ? 0 : types.recipe == "nvfp4" ? 8 : 4;
  sixteenths_of_ = types.compute == DataType::kNvfp4 ? 8 : 16;
}

std::int64_t Quantisation::bytes(std::int64_t elements) const {
  return (elements * (8 * sixteenths_of_ + scale_bytes_) + 127) / 128;
}

std::int64_t Quantisation::weight_cast_bytes(std::int64_t parameters) const {
  if (!on_)
    return 0;
  if (native_)  // the optimizer wrote the one copy, the transposed one is made from it
    return copies_ == 2 ? copied_bytes(parameters) : 0;
  return (scans_ ? 2 : 1) * wide_bytes_ * parameters + copied_bytes(parameters);
}

std::int64_t Quantisation::weight_bytes(std::int64_t parameters) const {
  if (!on_)
    return wide_bytes_ * parameters;
  return (native_ ? 0 : wide_bytes_ * parameters) + copied_bytes(parameters);
}

std::int64_t narrow_weights(const BlockOperators& operators) {
  std::int64_t weights = 0;
  for (const Operator& op : operators.forward) {
    if (op.kind == OperatorKind::kGemm && is_narrow(op.precision))
      weights += op.gemms * op.n * op.k;
  }
  return weights;
}

}  // namespace foretrain
