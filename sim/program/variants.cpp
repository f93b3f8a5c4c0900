#include "foretrain/program.h"

namespace foretrain {

Program without_factors(const Program& program) {
  Program result = program;
  result.factor_sets = {FactorSet{}};
  for (Instance& instance : result.instances) {
    instance.factor_set = 0;
  }
  return result;
}

Program with_free_point_to_point(const Program& program) {
  Program result = program;
  for (Block& block : result.blocks) {
    for (Task& task : block.tasks) {
      if (task.kind == TaskKind::kSend || task.kind == TaskKind::kReceive) {
        task.work = {};
      }
    }
  }
  return result;
}

}  // namespace foretrain
