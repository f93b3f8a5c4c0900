#include "foretrain/plan.h"

namespace foretrain {

Plan plan_layout(const TrainingJob& job, const PlanOptions& options) {
  Plan plan;
  plan.estimate =
      Estimator(job.model, job.sequence_length, job.global_batch_size, options.assumptions)
          .estimate({});
  return plan;
}

}  // namespace foretrain
