#include "tools/commands.h"
#include "tools/output.h"

namespace foretrain {

int cmd_plan(int argc, char** argv) {
  return refuse_not_built(argc, argv, "plan");
}

}  // namespace foretrain
