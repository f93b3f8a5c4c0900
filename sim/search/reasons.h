#pragma once

#include "sim/search/layout_rules.h"
#include "sim/search/sieve.h"

#include <string>

namespace foretrain {

/// "needs 84.30 GB of the 72.00 GB a GPU may use, 12.30 GB too much (weights ...)".
std::string memory_reason(const Estimate& estimate);

/// What binds a list that is empty or shorter than asked for; parts end in "; ".
std::string list_reason(const SearchSubject& subject,
                        const Combinations& combinations,
                        const Sieved& sieved,
                        const SearchResult& result);

/// Where the simulation refutes the best of a list: says so in its reason and, where nothing is
/// left, finds the way out.
void explain_refuted(const SearchSubject& subject, SearchResult& result);

/// Why no layout with these degrees is in the list.
std::string absence_reason(const SearchSubject& subject,
                           const Combinations& combinations,
                           const Estimator& estimator,
                           const Layout& degrees);

}  // namespace foretrain
