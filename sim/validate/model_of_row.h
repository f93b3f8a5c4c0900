#pragma once

#include "sim/validate/words.h"

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// A row's model as the object of a scenario, or which size is missing.
struct RowModel {
  std::string json;
  std::vector<std::string> assumed;
  std::string missing;
};
RowModel model_of_row(const PublishedRow& row, const ModelSpelling& spelling);

}  // namespace foretrain
