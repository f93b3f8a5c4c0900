#pragma once

#include "foretrain/estimate.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace foretrain::test {

/// An estimator of a preset model on a preset topology; H100 unless another is named.
inline Estimator estimator_of(ClosedForm form,
                              const std::string& model,
                              std::int64_t sequence_length,
                              std::int64_t batch,
                              const std::string& topology = "dgx-h100-ndr400") {
  const Expected<ModelConfig> config = read_model(model);
  const Expected<TopologySpec> hardware = read_topology(topology);
  if (!config || !hardware) {
    ADD_FAILURE() << "cannot read " << model << " or " << topology;
    return Estimator(ModelConfig{}, 1, 1, Assumptions{});
  }
  return Estimator(*config, sequence_length, batch, default_assumptions(form, *config, *hardware));
}

inline Estimator chapter_estimator(const std::string& model,
                                   std::int64_t sequence_length,
                                   std::int64_t batch) {
  return estimator_of(ClosedForm::kChapter, model, sequence_length, batch);
}

}  // namespace foretrain::test
