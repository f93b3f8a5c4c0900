#pragma once

#include "foretrain/validate.h"

namespace foretrain {

/// Everything of a result that follows from its rows; the terms of the worst are left empty.
void summarise(int worst, ValidationResult& result);

}  // namespace foretrain
