#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

/// The inner loops of the dataflow evaluator: plain arrays over the instances of a cohort.
namespace foretrain {

using Times = std::vector<std::int64_t>;  ///< ps, one per instance of a cohort

inline void max_into(Times& to, const Times& other) {
  std::int64_t* a = to.data();
  const std::int64_t* b = other.data();
  const std::size_t n = to.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = a[i] < b[i] ? b[i] : a[i];
  }
}

inline void max_into_shifted(Times& to, const Times& other, std::int64_t shift) {
  std::int64_t* a = to.data();
  const std::int64_t* b = other.data();
  const std::size_t n = to.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = a[i] < b[i] + shift ? b[i] + shift : a[i];
  }
}

inline void max_into_gathered(Times& to,
                              const Times& other,
                              const std::vector<std::int32_t>& index) {
  std::int64_t* a = to.data();
  const std::int64_t* b = other.data();
  const std::int32_t* from = index.data();
  const std::size_t n = to.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = a[i] < b[from[i]] ? b[from[i]] : a[i];
  }
}

inline void add_scalar(Times& to, std::int64_t value) {
  std::int64_t* a = to.data();
  const std::size_t n = to.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i] += value;
  }
}

inline void add(Times& to, const Times& other) {
  std::int64_t* a = to.data();
  const std::int64_t* b = other.data();
  const std::size_t n = to.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i] += b[i];
  }
}

/// to += later - earlier
inline void add_difference(Times& to, const Times& later, const Times& earlier) {
  std::int64_t* a = to.data();
  const std::int64_t* b = later.data();
  const std::int64_t* c = earlier.data();
  const std::size_t n = to.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i] += b[i] - c[i];
  }
}

}  // namespace foretrain
