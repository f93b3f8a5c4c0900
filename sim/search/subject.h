#pragma once

#include "foretrain/search.h"

namespace foretrain {

/// What the rules of a search ask about, beside the layout. The layout's dp is 0 where its other
/// degrees do not divide the GPUs.
struct SearchSubject {
  const TrainingJob& job;
  const SearchAxes& axes;
  const Assumptions& assumptions;
};

}  // namespace foretrain
