#include "tools/commands.h"
#include "tools/output.h"

namespace foretrain {

int cmd_estimate(int argc, char** argv) {
  return refuse_not_built(argc, argv, "estimate");
}

}  // namespace foretrain
