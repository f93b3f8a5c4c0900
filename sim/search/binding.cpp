#include "sim/search/binding.h"

#include <bit>
#include <map>

namespace foretrain {
namespace {

struct Breakers {
  std::int64_t layouts = 0;
  Layout first;
};

bool binds_more(std::uint32_t rules,
                const Breakers& breakers,
                std::uint32_t others,
                const Breakers& most) {
  const int fewer = std::popcount(others) - std::popcount(rules);
  return fewer != 0 ? fewer > 0 : breakers.layouts > most.layouts;
}

}  // namespace

std::optional<Binding> binding_rules(const SearchSubject& subject,
                                     const Combinations& combinations) {
  std::map<std::uint32_t, Breakers> by_rules;
  for (std::int64_t number = 0; number < combinations.count(); ++number) {
    const Layout layout = combinations.at(number, subject.job.gpus);
    const std::optional<std::uint32_t> broken = broken_rules(subject, layout);
    if (!broken || *broken == 0) {
      continue;
    }
    Breakers& breakers = by_rules[*broken];
    if (breakers.layouts++ == 0) {
      breakers.first = layout;
    }
  }
  if (by_rules.empty()) {
    return std::nullopt;
  }
  auto most = by_rules.begin();
  for (auto at = by_rules.begin(); at != by_rules.end(); ++at) {
    if (binds_more(at->first, at->second, most->first, most->second)) {
      most = at;
    }
  }
  Binding binding;
  binding.layouts = most->second.layouts;
  binding.example = most->second.first;
  for (std::size_t rule = 0; rule < layout_rules().size(); ++rule) {
    if ((most->first >> rule & 1U) != 0) {
      binding.rules.push_back(rule);
    }
  }
  return binding;
}

}  // namespace foretrain
