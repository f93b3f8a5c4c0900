#include "sim/search/reasons.h"

#include <algorithm>

namespace foretrain {
namespace {

/// The number of the first combination with these degrees over those inside them, or why none has.
Expected<std::int64_t> place(const Layout& degrees) {
  struct Searched {
    const char* name;
    std::int64_t degree;
    const std::vector<std::int64_t>& axis;
  };
  std::int64_t number = 0;
  for (const Searched& one : {Searched{"tp", degrees.tp, Combinations::tp()},
                              Searched{"cp", degrees.cp, Combinations::cp()},
                              Searched{"pp", degrees.pp, Combinations::pp()}}) {
    const auto found = std::find(one.axis.begin(), one.axis.end(), one.degree);
    if (found == one.axis.end()) {
      return refuse({"",
                     std::string(one.name) + " " + std::to_string(one.degree) +
                         " is not searched: powers of two from 1 to " +
                         std::to_string(one.axis.back()) + " are",
                     ""});
    }
    number = number * static_cast<std::int64_t>(one.axis.size()) + (found - one.axis.begin());
  }
  return number;
}

}  // namespace

std::string absence_reason(const SearchSubject& subject,
                           const Combinations& combinations,
                           const Estimator& estimator,
                           const Layout& degrees) {
  const Expected<std::int64_t> number = place(degrees);
  if (!number) {
    return number.error().list.front().message;
  }
  const auto triples = static_cast<std::int64_t>(
      Combinations::tp().size() * Combinations::cp().size() * Combinations::pp().size());
  const std::int64_t inside = combinations.count() / triples;
  std::optional<Estimate> nearest;
  std::size_t furthest = 0;
  std::string reason;
  for (std::int64_t at = *number * inside; at < (*number + 1) * inside; ++at) {
    const Layout layout = combinations.at(at, subject.job.gpus);
    const std::optional<std::size_t> broken = first_broken(subject, layout);
    if (!broken) {
      const Estimate estimate = estimator.estimate(layout);
      if (!nearest || shortfall(estimate) < shortfall(*nearest)) {
        nearest = estimate;
      }
    } else if (reason.empty() || *broken > furthest) {
      furthest = *broken;
      reason = layout_rules()[*broken].reason(subject, layout);
    }
  }
  return nearest ? memory_reason(*nearest) : reason;
}

}  // namespace foretrain
