#pragma once

#include "sim/search/subject.h"

namespace foretrain {

/// Whether a layout is another of the same search under other names, which stands in its place:
/// without a pipeline schedule and chunks mean nothing, without replicas sharding, and a dimension
/// of one rank has no place in the order; one chunk a rank, interleaved, is 1f1b.
bool is_twin(const SearchSubject& subject, const Layout& layout);

}  // namespace foretrain
