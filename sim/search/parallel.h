#pragma once

#include <cstdint>
#include <functional>

namespace foretrain {

/// Calls work(0) .. work(count - 1), each once, from up to `threads` threads (0: one per core).
/// Which thread runs which is not determined: results belong in slots of their number.
void for_each_number(int threads,
                     std::int64_t count,
                     const std::function<void(std::int64_t)>& work);

}  // namespace foretrain
