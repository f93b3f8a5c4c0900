#pragma once

#include "foretrain/search.h"

#include <vector>

namespace foretrain {

/// Simulates layouts of one search, in parallel, and tells how far it is.
class BestSimulations {
 public:
  BestSimulations(const TrainingJob& job, const SearchOptions& options)
      : job_(job), options_(options) {}

  /// From the front of a list in the closed form's order until as many as asked for fit or cannot
  /// be simulated.
  void simulate_front(std::vector<RankedLayout>& layouts);

  /// Those of them that were not simulated yet; the list stays as it is.
  void simulate_shown(std::vector<ShownLayout>& shown);

 private:
  void simulate(const std::vector<RankedLayout*>& layouts);

  const TrainingJob& job_;
  const SearchOptions& options_;
  int done_ = 0, total_ = 0;
};

}  // namespace foretrain
