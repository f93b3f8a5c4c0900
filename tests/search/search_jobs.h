#pragma once

#include "foretrain/search.h"

#include <string>

#include <gtest/gtest.h>

namespace foretrain::test {

/// A job on H100s unless another topology is named.
inline TrainingJob job_of(const std::string& model,
                          std::int64_t gpus,
                          std::int64_t sequence_length,
                          std::int64_t batch,
                          const std::string& topology = "dgx-h100-ndr400") {
  Expected<TrainingJob> job = read_job(model, topology, gpus, sequence_length, batch);
  if (!job) {
    ADD_FAILURE() << model << " on " << topology << ": " << job.error().list.front().message;
    return {};
  }
  return *std::move(job);
}

/// The chapter's rules, nothing simulated.
inline SearchOptions closed_form(const TrainingJob& job) {
  SearchOptions options;
  options.assumptions = default_assumptions(ClosedForm::kChapter, job.model, job.hardware);
  options.simulate = 0;
  options.threads = 1;
  return options;
}

inline SearchResult searched(const TrainingJob& job, const SearchOptions& options) {
  Expected<SearchResult> result = search(job, options);
  if (!result) {
    ADD_FAILURE() << result.error().list.front().message;
    return {};
  }
  return *std::move(result);
}

}  // namespace foretrain::test
