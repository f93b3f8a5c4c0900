#include "sim/engine/dataflow.h"

#include <algorithm>

namespace foretrain {

std::int64_t Dataflow::latest_end() const {
  std::int64_t latest = 0;
  for (const CohortState& cohort : cohorts_) {
    for (const StreamState& stream : cohort.streams) {
      latest = std::max(latest, *std::max_element(stream.clock.begin(), stream.clock.end()));
    }
  }
  return latest;
}

std::int64_t Dataflow::latest_step_end() const {
  std::int64_t latest = 0;
  for (const CohortState& cohort : cohorts_) {
    latest = std::max(latest, *std::max_element(cohort.step_end.begin(), cohort.step_end.end()));
  }
  return latest;
}

Times Dataflow::step_ends() const {
  Times ends(program_.instances.size(), 0);
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    const std::vector<std::int32_t>& instances = plan_.cohorts[c].instances;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      ends[instances[i]] = cohorts_[c].step_end[i];
    }
  }
  return ends;
}

Times Dataflow::carried_state() const {
  const std::int64_t base = latest_step_end();
  Times state;
  const auto append = [&state, base](const Times& times) {
    for (const std::int64_t time : times) {
      state.push_back(time - base);
    }
  };
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    const CohortState& cohort = cohorts_[c];
    const std::int32_t list = plan_.cohorts[c].list;
    for (std::size_t s = 0; s < cohort.streams.size(); ++s) {
      if (!plan_.lists[list].streams[s].empty()) {
        append(cohort.streams[s].clock);
      }
    }
    for (const Times& carried : cohort.carried) {
      append(carried);
    }
    if (program_.templates[list].host_sync_task >= 0) {
      append(cohort.host_base);
    }
  }
  return state;
}

std::vector<RankAccount> Dataflow::accounts() const {
  std::vector<RankAccount> result(program_.instances.size());
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    const std::vector<std::int32_t>& instances = plan_.cohorts[c].instances;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      result[instances[i]] = cohorts_[c].ledger.account(i);
    }
  }
  return result;
}

std::vector<std::vector<std::int32_t>> Dataflow::progress() const {
  std::vector<std::vector<std::int32_t>> result(program_.instances.size());
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    for (const std::int32_t instance : plan_.cohorts[c].instances) {
      for (const StreamState& stream : cohorts_[c].streams) {
        result[instance].push_back(stream.tasks_done);
      }
    }
  }
  return result;
}

}  // namespace foretrain
