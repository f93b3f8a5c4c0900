#include "sim/cluster/slope.h"

#include <algorithm>
#include <utility>

#include <boost/range/iterator_range.hpp>

namespace foretrain {

Slope::Slope(const Router::Wiring& wiring, const std::vector<std::size_t>& targets)
    : left_(num_vertices(wiring.graph), kUnreached) {
  for (const std::size_t target : targets) {
    const std::vector<std::int64_t>& distance = wiring.distances(target);
    for (std::size_t at = 0; at < left_.size(); ++at) {
      left_[at] = std::min(left_[at], distance[at]);
    }
  }
  for (std::size_t at = 0; at < left_.size(); ++at) {
    if (left_[at] != kUnreached && left_[at] > 0) {
      order_.push_back(static_cast<std::uint32_t>(at));
    }
  }
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return left_[a] > left_[b];
  });
  for (const std::uint32_t at : order_) {
    first_.push_back(static_cast<std::uint32_t>(steps_.size()));
    for (const auto edge : boost::make_iterator_range(out_edges(std::size_t{at}, wiring.graph))) {
      const std::size_t next = target(edge, wiring.graph);
      const SwitchCable& cable = wiring.graph[edge];
      if (left_[next] != kUnreached && left_[at] == cable.latency + left_[next]) {
        steps_.push_back({cable.link, static_cast<std::uint32_t>(next)});
      }
    }
  }
  first_.push_back(static_cast<std::uint32_t>(steps_.size()));
}

void Slope::run(Flow& flow, std::size_t choice) const {
  for (std::size_t place = 0; place < order_.size(); ++place) {
    const double amount = std::exchange(flow.at_switch[order_[place]], 0.0);
    if (amount != 0.0) {
      const Step& step = steps_[first_[place] + choice % (first_[place + 1] - first_[place])];
      flow.on_link[static_cast<std::size_t>(step.link)] += amount;
      flow.at_switch[step.next] += amount;
    }
  }
}

void Slope::run_split(Flow& flow) const {
  for (std::size_t place = 0; place < order_.size(); ++place) {
    const double amount = std::exchange(flow.at_switch[order_[place]], 0.0);
    const double variance = std::exchange(flow.variance_at_switch[order_[place]], 0.0);
    const double part = 1.0 / (first_[place + 1] - first_[place]);
    for (std::uint32_t at = first_[place]; amount != 0.0 && at < first_[place + 1]; ++at) {
      const auto link = static_cast<std::size_t>(steps_[at].link);
      const double strays = part * part * variance + amount * part * (1.0 - part);
      flow.on_link[link] += amount * part;
      flow.variance_on_link[link] += strays;
      flow.at_switch[steps_[at].next] += amount * part;
      flow.variance_at_switch[steps_[at].next] += strays;
    }
  }
}

}  // namespace foretrain
