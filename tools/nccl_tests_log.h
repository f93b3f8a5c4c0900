#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// One size of a run of nccl-tests. Times in seconds, of one operation.
struct MeasuredSize {
  std::int64_t bytes = 0;
  std::optional<double> out_of_place_s;
  std::optional<double> in_place_s;
  /// Out of place where that was measured.
  double seconds() const { return out_of_place_s ? *out_of_place_s : in_place_s.value_or(0.0); }
};

/// What a log of nccl-tests holds.
struct NcclTestsLog {
  std::vector<MeasuredSize> sizes;    ///< never empty, in order of size, each once
  std::int64_t ranks = 0;             ///< as the header lists them; 0: it does not
  std::string op;                     ///< as the log names it, e.g. "all_reduce"; "": it does not
  std::vector<std::int64_t> untimed;  ///< sizes whose row has no time above zero; left out
};

/// Reads what nccl-tests prints, also with a prefix on every line (mpirun, srun --label) and among
/// NCCL's own lines, or its JSON (-J). Times that are N/A or not above zero do not count. Refuses a
/// text without a single measured size.
Expected<NcclTestsLog> read_nccl_tests(std::string_view text);

}  // namespace foretrain
