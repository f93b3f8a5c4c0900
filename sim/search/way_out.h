#pragma once

#include "sim/search/binding.h"

#include <optional>
#include <vector>

namespace foretrain {

/// The changes that let layouts keep what binds them, in the words of the command line; empty where
/// one of the rules cannot be helped.
std::vector<SearchChange> relaxed(const Binding& binding, AskedSearch& asked);

/// What to ask instead of a search in whose list nothing is. Empty: nothing is known to help.
std::vector<SearchChange> way_out(const SearchSubject& subject,
                                  const Combinations& combinations,
                                  bool any_legal);

}  // namespace foretrain
