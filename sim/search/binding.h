#pragma once

#include "sim/search/combinations.h"
#include "sim/search/layout_rules.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace foretrain {

/// The rules that alone stand between a search and layouts that are otherwise possible.
struct Binding {
  std::vector<std::size_t> rules;  ///< as few as any layout breaks
  std::int64_t layouts = 0;        ///< that break these and no other
  Layout example;                  ///< the first of them
};

/// Of the fewest rules, those that leave out most; the earlier of equals. Nothing where every
/// layout on these GPUs is legal.
std::optional<Binding> binding_rules(const SearchSubject& subject,
                                     const Combinations& combinations);

}  // namespace foretrain
