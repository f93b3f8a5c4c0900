#include "sim/lower/tensor_chunks.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

bool moves(const Operator& op, CollectiveKind kind) {
  return op.kind == OperatorKind::kCollective && op.dimension == MeshDimension::kTp &&
         op.collective == kind && !op.detached;
}

/// A GEMM whose rows are tokens.
bool is_cut_along_tokens(const Operator& op) {
  return op.kind == OperatorKind::kGemm && op.pass != Pass::kWeightGradient && op.gemms == 1;
}

bool waits_for(const Operator& op, std::size_t input) {
  return std::find(op.inputs.begin(), op.inputs.end(), static_cast<std::int32_t>(input)) !=
         op.inputs.end();
}

void pair(std::vector<Cut>& cuts, std::size_t transfer, std::size_t gemm, std::int64_t pieces) {
  cuts[transfer] = {pieces, static_cast<std::int32_t>(gemm)};
  cuts[gemm] = {pieces, static_cast<std::int32_t>(transfer)};
}

}  // namespace

std::vector<Cut> tensor_cuts(const std::vector<Operator>& operators, std::int64_t tp) {
  std::vector<Cut> cuts(operators.size());
  for (std::size_t at = 0; at < operators.size(); ++at) {
    const Operator& op = operators[at];
    if (moves(op, CollectiveKind::kReduceScatter) && !op.inputs.empty()) {
      const auto before = static_cast<std::size_t>(op.inputs.back());
      const Operator& gemm = operators[before];
      // The gradient of a gathered input is scattered beside the weight gradient already.
      if (is_cut_along_tokens(gemm) && gemm.pass != Pass::kInputGradient &&
          gemm.m >= kReducePieces && cuts[before].pieces == 1) {
        pair(cuts, at, before, kReducePieces);
      }
    }
    if (!moves(op, CollectiveKind::kAllGather) || op.pass == Pass::kWeightGradient) {
      continue;
    }
    const auto reader = std::find_if(operators.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                     operators.end(),
                                     [at](const Operator& later) { return waits_for(later, at); });
    if (reader != operators.end() && is_cut_along_tokens(*reader) && reader->m >= tp) {
      pair(cuts, at, static_cast<std::size_t>(reader - operators.begin()), tp);
    }
  }
  return cuts;
}

Operator gemm_piece(const Operator& gemm, std::int64_t index, std::int64_t pieces) {
  Operator piece = gemm;
  piece.m = part_of(gemm.m, index, pieces);
  piece.flops = Flops{part_of(gemm.flops.value, index, pieces)};
  // Operands of one width: of the bytes, weights take their share of the elements.
  const auto weights = static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  const auto rows = static_cast<double>(gemm.m) * static_cast<double>(gemm.n + gemm.k);
  const auto bytes = static_cast<double>(gemm.bytes.value);
  const double fixed = bytes * weights / (weights + rows);
  const double share = static_cast<double>(piece.m) / static_cast<double>(gemm.m);
  piece.bytes = Bytes{std::llround(fixed + (bytes - fixed) * share)};
  return piece;
}

}  // namespace foretrain
