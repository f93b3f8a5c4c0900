#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <string>
#include <vector>

namespace foretrain {

/// Reads "0,8-15" as ranks below `gpus`, in the order written. A rank named twice is a fault like
/// any other; all come at once and name `option`.
Expected<std::vector<std::int64_t>> parse_rank_list(const std::string& text,
                                                    std::int64_t gpus,
                                                    const std::string& option);

}  // namespace foretrain
