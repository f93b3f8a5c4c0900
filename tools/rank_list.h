#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretrain {

/// First and last of "8-15", or of "3" alone; nothing when it is no range of whole numbers.
std::optional<std::pair<std::int64_t, std::int64_t>> number_range(std::string_view item);

/// Reads "0,8-15" as ranks below `gpus`, in the order written. A rank named twice is a fault like
/// any other; all come at once and name `option`.
Expected<std::vector<std::int64_t>> parse_rank_list(const std::string& text,
                                                    std::int64_t gpus,
                                                    const std::string& option);

}  // namespace foretrain
