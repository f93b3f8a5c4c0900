#include "foretrain/flow_run.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace foretrain {
namespace {

/// Half of what a Duration holds: sums of two stay countable.
constexpr double kMostSeconds = 4e18 / 1e12;

bool known(const Topology& topology, std::int64_t rank) {
  return rank >= 0 && rank < topology.gpus();
}

void check_rank(const Topology& topology,
                std::int64_t rank,
                const std::string& pointer,
                std::vector<Diagnostic>& faults) {
  if (!known(topology, rank)) {
    const std::int64_t gpus = topology.gpus();
    faults.push_back(
        {pointer,
         "rank " + std::to_string(rank) + " is not one of the " + with_commas(gpus) + " " +
             plural("GPU", gpus),
         gpus == 1 ? "its only rank is 0" : "ranks are 0 to " + std::to_string(gpus - 1)});
  }
}

Bandwidth narrowest(const Topology& topology, const std::vector<std::int32_t>& path) {
  Bandwidth rate{std::numeric_limits<std::int64_t>::max()};
  for (const std::int32_t link : path) {
    rate = std::min(rate, topology.links()[static_cast<std::size_t>(link)].capacity);
  }
  return rate;
}

std::vector<FlowOutcome> routed(const Topology& topology, std::span<const FlowRequest> flows) {
  std::vector<FlowOutcome> outcomes;
  outcomes.reserve(flows.size());
  for (const FlowRequest& flow : flows) {
    FlowOutcome& outcome = outcomes.emplace_back();
    outcome.path = topology.route(flow.source, flow.destination);
    for (const std::int32_t link : outcome.path) {
      outcome.latency += topology.links()[static_cast<std::size_t>(link)].latency;
    }
  }
  return outcomes;
}

Instant arrival(const FlowRequest& flow, const FlowOutcome& outcome) {
  return Instant{flow.start + outcome.latency};
}

/// The flows by when they begin to share; equal ones in the list's order.
std::vector<std::size_t> by_arrival(std::span<const FlowRequest> flows,
                                    const std::vector<FlowOutcome>& outcomes) {
  std::vector<std::size_t> order(flows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return arrival(flows[a], outcomes[a]) < arrival(flows[b], outcomes[b]);
  });
  return order;
}

std::vector<double> capacities(const Topology& topology) {
  std::vector<double> rates;
  rates.reserve(topology.links().size());
  for (const Link& link : topology.links()) {
    rates.push_back(static_cast<double>(link.capacity.bytes_per_second));
  }
  return rates;
}

/// Links that can hold a flow up. Not so one whose every flow goes over a narrower one as well, as
/// all of a GPU's PCIe link goes over its NIC; of equally narrow ones the first counts.
std::vector<bool> links_that_count(const std::vector<double>& rates,
                                   const std::vector<FlowOutcome>& outcomes) {
  std::vector<std::vector<std::int32_t>> companions(rates.size());  // on every path over the link
  std::vector<bool> used(rates.size(), false);
  for (const FlowOutcome& outcome : outcomes) {
    const std::vector<std::int32_t>& path = outcome.path;
    for (const std::int32_t link : path) {
      const auto at = static_cast<std::size_t>(link);
      if (!used[at]) {
        used[at] = true;
        companions[at] = path;
      }
      std::erase_if(companions[at], [&path](std::int32_t other) {
        return std::find(path.begin(), path.end(), other) == path.end();
      });
    }
  }
  for (std::size_t at = 0; at < used.size(); ++at) {
    const auto narrower = [&](std::int32_t other) {
      const auto beside = static_cast<std::size_t>(other);
      return std::pair(rates[beside], beside) < std::pair(rates[at], at);
    };
    used[at] = used[at] && std::none_of(companions[at].begin(), companions[at].end(), narrower);
  }
  return used;
}

/// At least 1 ps where there are bytes.
Duration rounded_down(Bytes bytes, Bandwidth rate) {
  const Duration up = bytes / rate;
  const bool whole =
      Int128{up.count()} * rate.bytes_per_second == Int128{bytes.value} * Duration::period::den;
  return whole || up.count() <= 1 ? up : up - Duration{1};
}

void begin(Transfers& transfers,
           const Topology& topology,
           const FlowRequest& flow,
           const FlowOutcome& outcome,
           const std::vector<bool>& counts,
           std::size_t tag) {
  std::vector<LinkUse> uses;
  for (const std::int32_t link : outcome.path) {
    if (counts[static_cast<std::size_t>(link)]) {
      uses.push_back({link, 1.0});
    }
  }
  // Rounded down, so that the limit, which moves exactly these bytes in whole picoseconds, is never
  // below the line rate: links alone slow a flow, and rounding becomes neither work nor idle time.
  const Bandwidth rate = narrowest(topology, outcome.path);
  const Duration alone = rounded_down(flow.bytes, rate);
  const double limit = alone == Duration{} ? static_cast<double>(rate.bytes_per_second)
                                           : static_cast<double>(flow.bytes.value) / seconds(alone);
  transfers.begin(arrival(flow, outcome), uses, limit, alone, static_cast<std::int64_t>(tag));
}

/// Some link is full while any flow runs, so the flows one after the other would take longer; most
/// lists are far from the bound even at the slowest link's rate, without their routes.
bool countable(const Topology& topology, std::span<const FlowRequest> flows) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const double capacity : capacities(topology)) {
    slowest = std::min(slowest, capacity);
  }
  double quick = 0;
  double last_start = 0;
  for (const FlowRequest& flow : flows) {
    quick += static_cast<double>(flow.bytes.value) / slowest;
    last_start = std::max(last_start, seconds(flow.start));
  }
  if (quick + last_start < kMostSeconds) {
    return true;
  }
  double most = last_start;
  for (const FlowRequest& flow : flows) {
    const Bandwidth rate = narrowest(topology, topology.route(flow.source, flow.destination));
    most += static_cast<double>(flow.bytes.value) / static_cast<double>(rate.bytes_per_second);
  }
  return most < kMostSeconds;
}

}  // namespace

std::vector<Diagnostic> flow_faults(const Topology& topology, std::span<const FlowRequest> flows) {
  std::vector<Diagnostic> faults;
  for (std::size_t at = 0; at < flows.size(); ++at) {
    const FlowRequest& flow = flows[at];
    const std::string pointer = "/flows/" + std::to_string(at);
    check_rank(topology, flow.source, pointer + "/source", faults);
    check_rank(topology, flow.destination, pointer + "/destination", faults);
    if (known(topology, flow.source) && known(topology, flow.destination) &&
        !topology.reachable(flow.source, flow.destination)) {
      faults.push_back({pointer,
                        "rank " + std::to_string(flow.destination) +
                            " cannot be reached from rank " + std::to_string(flow.source),
                        topology.why_unreachable()});
    }
  }
  if (faults.empty() && !countable(topology, flows)) {
    faults.push_back({"/flows",
                      "together the flows may take more than the " +
                          fixed(std::floor(kMostSeconds / 86400.0), 0) +
                          " days that can be counted",
                      "send less, or start sooner"});
  }
  return faults;
}

FlowRun run_flows(const Topology& topology, std::span<const FlowRequest> flows) {
  FlowRun run;
  run.flows = routed(topology, flows);
  const std::vector<std::size_t> order = by_arrival(flows, run.flows);
  const std::vector<double> rates = capacities(topology);
  const std::vector<bool> counts = links_that_count(rates, run.flows);
  Transfers transfers(rates);
  std::size_t begun = 0;
  std::size_t ended = 0;
  while (ended < flows.size()) {
    const std::optional<Instant> end = transfers.next_end();
    const bool arrives = begun < order.size();
    const Instant next = arrives ? arrival(flows[order[begun]], run.flows[order[begun]]) : *end;
    if (end && *end <= next) {
      for (const std::int64_t tag : transfers.take_ended(*end)) {
        run.flows[static_cast<std::size_t>(tag)].finish = *end;
        ++ended;
      }
      continue;
    }
    for (; begun < order.size(); ++begun) {
      const std::size_t at = order[begun];
      if (arrival(flows[at], run.flows[at]) != next) {
        break;
      }
      begin(transfers, topology, flows[at], run.flows[at], counts, at);
    }
  }
  run.carried.assign(topology.links().size(), 0.0);
  for (std::size_t at = 0; at < flows.size(); ++at) {
    for (const std::int32_t link : run.flows[at].path) {
      run.carried[static_cast<std::size_t>(link)] += static_cast<double>(flows[at].bytes.value);
    }
  }
  return run;
}

}  // namespace foretrain
