#include "tools/commands.h"
#include "tools/failed_parts.h"
#include "tools/output.h"
#include "tools/progress_line.h"

#include "foretrain/flow_run.h"
#include "foretrain/scenario.h"
#include "sim/base/format.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownFlows = 40;
constexpr std::size_t kShownLinks = 10;

struct FlowsLine {
  std::string file, topology, json_target;
  std::int64_t gpus = 0;  ///< 0: not given
  std::string routing = "destination";
  FailedParts failed;
};

Routing routing_of(const std::string& word) {
  return word == "hashed"   ? Routing::kHashed
         : word == "single" ? Routing::kSingle
                            : Routing::kDestination;
}

/// The given count, or the whole nodes that hold the highest rank named.
std::int64_t gpus_for(const FlowsLine& line,
                      const TopologySpec& spec,
                      const std::vector<FlowRequest>& flows) {
  if (line.gpus != 0) {
    return line.gpus;
  }
  std::int64_t highest = 0;
  for (const FlowRequest& flow : flows) {
    highest = std::max({highest, flow.source, flow.destination});
  }
  const std::int64_t per_node = std::max(spec.gpus_per_node, 1);
  return (highest / per_node + 1) * per_node;
}

const Link& link_at(const Topology& topology, std::int32_t link) {
  return topology.links()[static_cast<std::size_t>(link)];
}

Json flows_json(const Topology& topology,
                const std::vector<FlowRequest>& requests,
                const FlowRun& run) {
  Json flows = Json::array();
  std::set<std::int32_t> used;
  for (std::size_t at = 0; at < requests.size(); ++at) {
    const FlowOutcome& outcome = run.flows[at];
    Json path = Json::array();
    for (const std::int32_t link : outcome.path) {
      path.push_back(link_at(topology, link).id);
      used.insert(link);
    }
    flows.push_back({{"id", requests[at].id},
                     {"finish_s", seconds(outcome.finish.time_since_epoch())},
                     {"path", std::move(path)},
                     {"latency_s", seconds(outcome.latency)}});
  }
  Json links = Json::array();
  for (const std::int32_t link : used) {
    const Link& shown = link_at(topology, link);
    links.push_back({{"id", shown.id}, {"bandwidth", shown.capacity.bytes_per_second}});
  }
  return {{"flows", std::move(flows)}, {"links", std::move(links)}};
}

/// From when it begins to share to its end.
std::string mean_rate(const FlowRequest& flow, const FlowOutcome& outcome) {
  const Duration shared = outcome.finish.time_since_epoch() - flow.start - outcome.latency;
  return shared == Duration{} ? "-"
                              : human_rate(static_cast<double>(flow.bytes.value) / seconds(shared));
}

/// A flow's name as far as a column holds it; --json has all of it.
std::string shown_id(const std::string& id) {
  constexpr int kWidest = 40;
  std::string shown = id;
  while (display_width(shown) > kWidest) {
    while ((static_cast<unsigned char>(shown.back()) & 0xC0U) == 0x80U && shown.size() > 1) {
      shown.pop_back();  // the rest of a character of several bytes
    }
    shown.pop_back();
  }
  return shown + (shown.size() < id.size() ? "..." : "");
}

std::string flow_rows(const std::vector<FlowRequest>& requests, const FlowRun& run) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return run.flows[a].finish < run.flows[b].finish;
  });
  int width = 16;
  for (std::size_t row = 0; row < std::min(order.size(), kShownFlows); ++row) {
    width = std::max(width, display_width(shown_id(requests[order[row]].id)) + 2);
  }
  std::string text = "  " + pad("flow", width) + pad("from", 9, true) + pad("to", 9, true) +
                     pad("bytes", 12, true) + pad("start", 12, true) + pad("latency", 12, true) +
                     pad("finish", 12, true) + pad("mean rate", 13, true) + "\n";
  for (std::size_t row = 0; row < std::min(order.size(), kShownFlows); ++row) {
    const FlowRequest& flow = requests[order[row]];
    const FlowOutcome& outcome = run.flows[order[row]];
    text += "  " + pad(shown_id(flow.id), width) +
            pad("gpu" + std::to_string(flow.source), 9, true) +
            pad("gpu" + std::to_string(flow.destination), 9, true) +
            pad(human_bytes(flow.bytes.value), 12, true) + pad(human_time(flow.start), 12, true) +
            pad(human_time(outcome.latency), 12, true) +
            pad(human_time(outcome.finish.time_since_epoch()), 12, true) +
            pad(mean_rate(flow, outcome), 13, true) + "\n";
  }
  if (order.size() > kShownFlows) {
    text += "  ... " + with_commas(static_cast<std::int64_t>(order.size() - kShownFlows)) +
            " more that finish later (--json lists all)\n";
  }
  return text;
}

/// The links with the most to carry for their rate; the share is of the time until the last end.
std::string link_rows(const Topology& topology, const FlowRun& run, Duration whole) {
  const auto busy_s = [&](std::size_t link) {
    return run.carried[link] /
           static_cast<double>(topology.links()[link].capacity.bytes_per_second);
  };
  std::vector<std::size_t> order;
  for (std::size_t link = 0; link < run.carried.size(); ++link) {
    if (run.carried[link] > 0) {
      order.push_back(link);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return busy_s(a) > busy_s(b);
  });
  std::string text = order.empty() ? "" : "\nbusiest links (use: of the time until the last end)\n";
  order.resize(std::min(order.size(), kShownLinks));
  int width = 28;  // names of discovered switches may be longer
  for (const std::size_t link : order) {
    width = std::max(width, display_width(topology.links()[link].id) + 2);
  }
  for (const std::size_t link : order) {
    const Link& shown = topology.links()[link];
    text += "  " + pad(shown.id, width) +
            pad(human_rate(static_cast<double>(shown.capacity.bytes_per_second)), 12, true) +
            pad(human_bytes(static_cast<std::int64_t>(run.carried[link])), 12, true) +
            pad(percent(busy_s(link) / seconds(whole)), 10, true) + "\n";
  }
  return text;
}

std::string flows_text(const Topology& topology,
                       const std::vector<FlowRequest>& requests,
                       const FlowRun& run) {
  Instant last;
  for (const FlowOutcome& outcome : run.flows) {
    last = std::max(last, outcome.finish);
  }
  const auto count = static_cast<std::int64_t>(requests.size());
  return topology.spec().name + ", " + with_commas(topology.gpus()) + " " +
         plural("GPU", topology.gpus()) + ": " + with_commas(count) + " " + plural("flow", count) +
         ", the last ends at " + human_time(last.time_since_epoch()) +
         " (line rates, max-min fair)\n\n" + flow_rows(requests, run) +
         link_rows(topology, run, last.time_since_epoch());
}

/// Everything wrong with the list and the topology, which know nothing of each other.
Faults both_faults(const Expected<std::vector<FlowRequest>>& flows,
                   const Expected<TopologySpec>& spec) {
  Faults faults;
  if (!flows) {
    faults = flows.error();
  }
  if (!spec) {
    adopt_topology_faults(spec.error(), faults);
  }
  return faults;
}

FlowRun run_with_progress(const Topology& topology, const std::vector<FlowRequest>& flows) {
  const ProgressLine progress;
  return run_flows(topology, flows);
}

}  // namespace

int cmd_flows(int argc, char** argv) {
  CLI::App app("Given flows on shared links: finish time of each (max-min fair).", "flows");
  FlowsLine line;
  app.add_option("file", line.file, "JSON: {\"flows\": [{id, source, destination, bytes, start}]}")
      ->required()
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--topology", line.topology, "a preset's name or a path")
      ->required()
      ->type_name("NAME|FILE")
      ->check(not_empty());
  app.add_option("--gpus", line.gpus, "GPUs to build (default: whole nodes that hold all ranks)")
      ->check(whole_number(1));
  app.add_option("--routing", line.routing, "which of equal routes: destination, hashed or single")
      ->capture_default_str()
      ->check(CLI::IsMember({"destination", "hashed", "single"}));
  add_failed_options(app, line.failed);
  add_json_option(app, line.json_target);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over =
          refuse_overwriting("flows", {{"json", line.json_target}}, {line.file, line.topology})) {
    return *over;
  }
  const Expected<std::vector<FlowRequest>> flows = read_flows(line.file);
  Expected<TopologySpec> spec = read_topology(line.topology);
  if (!flows || !spec) {
    return report_faults(both_faults(flows, spec), line.file, line.json_target);
  }
  BuiltCluster cluster =
      build_cluster(*spec, line.failed, gpus_for(line, *spec, *flows), routing_of(line.routing));
  const std::optional<Topology>& topology = cluster.topology;
  for (Diagnostic& fault : topology ? flow_faults(*topology, *flows) : std::vector<Diagnostic>{}) {
    cluster.faults.push_back(std::move(fault));
  }
  if (!cluster.faults.empty()) {
    return report_faults(
        Faults{std::move(cluster.faults), FaultKind::kBadInput}, line.file, line.json_target);
  }
  const FlowRun run = run_with_progress(*topology, *flows);
  return line.json_target.empty()
             ? write_output("-", flows_text(*topology, *flows, run))
             : write_json(line.json_target, flows_json(*topology, *flows, run));
}

}  // namespace foretrain
