#include "sim/program/interner.h"

#include <algorithm>

namespace foretrain {
namespace {

std::uint64_t hash_of(std::span<const std::int32_t> key) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U + key.size();
  for (const std::int32_t word : key) {
    hash = (hash ^ static_cast<std::uint32_t>(word)) * 0xbf58476d1ce4e5b9U;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

std::span<const std::int32_t> Interner::key(std::int32_t id) const {
  const std::size_t last = id + 1 < size() ? first_[id + 1] : arena_.size();
  return {arena_.data() + first_[id], last - first_[id]};
}

void Interner::clear() {
  arena_.clear();
  first_.clear();
  hashes_.clear();
  std::fill(table_.begin(), table_.end(), -1);
}

void Interner::grow() {
  table_.assign(std::max<std::size_t>(64, table_.size() * 2), -1);
  for (std::int32_t id = 0; id < size(); ++id) {
    std::size_t place = hashes_[id] & (table_.size() - 1);
    while (table_[place] >= 0) {
      place = (place + 1) & (table_.size() - 1);
    }
    table_[place] = id;
  }
}

std::int32_t Interner::intern(std::span<const std::int32_t> key_words) {
  if (first_.size() * 2 >= table_.size()) {
    grow();
  }
  const std::uint64_t hash = hash_of(key_words);
  std::size_t place = hash & (table_.size() - 1);
  for (; table_[place] >= 0; place = (place + 1) & (table_.size() - 1)) {
    const std::int32_t id = table_[place];
    if (hashes_[id] == hash && std::ranges::equal(key(id), key_words)) {
      return id;
    }
  }
  const std::int32_t id = size();
  table_[place] = id;
  first_.push_back(arena_.size());
  hashes_.push_back(hash);
  arena_.insert(arena_.end(), key_words.begin(), key_words.end());
  return id;
}

}  // namespace foretrain
