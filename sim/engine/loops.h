#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// The inner loops of the dataflow evaluator: plain arrays over the instances of a cohort.
namespace foretrain {

using Times = std::vector<std::int64_t>;  ///< ps, one per instance of a cohort

inline void max_into(std::int64_t* to, const std::int64_t* other, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = to[i] < other[i] ? other[i] : to[i];
  }
}

inline void max_into_shifted(std::int64_t* to,
                             const std::int64_t* other,
                             std::int64_t shift,
                             std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = to[i] < other[i] + shift ? other[i] + shift : to[i];
  }
}

inline void max_into_gathered(std::int64_t* to,
                              const std::int64_t* other,
                              const std::int32_t* index,
                              std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = to[i] < other[index[i]] ? other[index[i]] : to[i];
  }
}

inline void add_scalar(std::int64_t* to, std::int64_t value, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] += value;
  }
}

inline void add(std::int64_t* to, const std::int64_t* other, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] += other[i];
  }
}

/// to += later - earlier
inline void add_difference(std::int64_t* to,
                           const std::int64_t* later,
                           const std::int64_t* earlier,
                           std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] += later[i] - earlier[i];
  }
}

}  // namespace foretrain
