#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace foretrain {

/// Numbers sequences of integers in order of first appearance; equal sequences get equal numbers.
/// An open-addressing table over one arena: no order of a hash is ever seen.
class Interner {
 public:
  std::int32_t intern(std::span<const std::int32_t> key);
  std::int32_t size() const { return static_cast<std::int32_t>(first_.size()); }
  std::span<const std::int32_t> key(std::int32_t id) const;
  void clear();

 private:
  void grow();

  std::vector<std::int32_t> arena_;
  std::vector<std::size_t> first_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::int32_t> table_;  ///< id or -1; size a power of two
};

}  // namespace foretrain
