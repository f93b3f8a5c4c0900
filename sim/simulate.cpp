#include "foretrain/simulate.h"

namespace foretrain {

std::string_view version() {
  return FORETRAIN_VERSION;
}

}  // namespace foretrain
