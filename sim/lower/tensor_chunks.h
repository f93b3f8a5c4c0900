#pragma once

#include "foretrain/model.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// Tensor-parallel transfers beside the GEMMs they feed or drain, cut in pieces as Transformer
/// Engine's user buffers cut them (MODEL 4.7): an all-gather goes round the ring while the GEMM
/// works on what has come, a reduce-scatter leaves piece by piece as the GEMM makes it.
namespace foretrain {

/// Pieces of a GEMM whose output is reduce-scattered (num_splits of the pipelined method).
inline constexpr std::int64_t kReducePieces = 4;

/// Label of what goes round the ring: copy engines carry it, no SMs.
inline constexpr std::string_view kRingPiece = "tp all-gather piece";

/// What one operator of a list is cut into; 1: it is whole.
struct Cut {
  std::int64_t pieces = 1;
  std::int32_t partner = -1;  ///< of a transfer the GEMM, of a GEMM the transfer
};

/// Per operator. Only a transfer and a GEMM whose every piece has a row are cut.
std::vector<Cut> tensor_cuts(const std::vector<Operator>& operators, std::int64_t tp);

/// Rows of piece `index` of a GEMM: FLOPs add up to the whole, every piece reads all weights.
Operator gemm_piece(const Operator& gemm, std::int64_t index, std::int64_t pieces);

/// The index-th of so many parts of a total, as even as integers are.
constexpr std::int64_t part_of(std::int64_t total, std::int64_t index, std::int64_t parts) {
  return total / parts * (index + 1) + total % parts * (index + 1) / parts -
         (total / parts * index + total % parts * index / parts);
}

}  // namespace foretrain
