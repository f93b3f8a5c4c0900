#pragma once

#include "foretrain/model.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace foretrain {

/// Collects what a block keeps; nothing is listed at zero bytes.
class StashList {
 public:
  void add(std::string_view name, std::int64_t bytes) {
    if (bytes > 0)
      list_.push_back({name, Bytes{bytes}});
  }
  std::vector<Stash> take() { return std::move(list_); }

 private:
  std::vector<Stash> list_;
};

}  // namespace foretrain
