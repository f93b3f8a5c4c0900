#pragma once

#include "foretrain/compare.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

/// The faces of a comparison.
namespace foretrain {

/// What a row's table and JSON show beside the fields of `run`; of a row that ended.
struct RowFigures {
  double bubble_share = 0;  ///< of the step, mean over ranks
  Duration exposed_comm{};  ///< mean over ranks: waits for tp, cp, ep, pp and dp
};
RowFigures figures_of(const StepReport& report);

/// Whether a row ran to its end.
bool ended(const ComparedRow& row);

/// Why the fastest that fits is so, against the next and against the first row, by the parts of
/// their steps; and what would be faster but does not fit. A paragraph each.
std::vector<std::string> compare_why(const std::vector<ComparedRow>& rows,
                                     const std::string& baseline);

struct ComparePage {
  int width = 100;
  std::string baseline;      ///< label of the row that others are held to
  std::string next_command;  ///< runs the fastest alone; may be empty
};
std::string compare_text(const std::vector<ComparedRow>& rows, const ComparePage& page);

nlohmann::ordered_json compare_json(const std::vector<ComparedRow>& rows,
                                    const std::string& baseline);

}  // namespace foretrain
