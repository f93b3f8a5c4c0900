#include "tools/commands.h"
#include "tools/output.h"

namespace foretrain {

int cmd_search(int argc, char** argv) {
  return refuse_not_built(argc, argv, "search");
}

}  // namespace foretrain
