#pragma once

#include "foretrain/diagnostic.h"

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// A large count as people write it: "15T", "1.5e13", "300B", "7 M"; suffixes k, M, B (also G) and
/// T are powers of a thousand. Nothing when it cannot be read.
std::optional<double> parse_count(const std::string& text);

/// A share: "0.4" or "40 %".
std::optional<double> parse_share(const std::string& text);

}  // namespace foretrain
