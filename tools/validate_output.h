#pragma once

#include "foretrain/validate.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace foretrain {

/// The result as people read it, in lines of at most `width` columns.
std::string validation_text(const std::string& table, const ValidationResult& result, int width);

nlohmann::ordered_json validation_json(const ValidationResult& result);

}  // namespace foretrain
