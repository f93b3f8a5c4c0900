#include "tools/trace_output.h"

#include "tools/output.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace foretrain {

std::int64_t cut_trace(Simulation& simulation, int steps, std::int64_t most_bytes) {
  std::vector<Span>& spans = simulation.timeline.spans;
  std::vector<std::int32_t> shown;
  for (const Span& span : spans) {
    if (shown.empty() || shown.back() != span.instance) {
      shown.push_back(span.instance);
    }
  }
  while (shown.size() > 1 && predict_trace_bytes(simulation.program, shown, steps) > most_bytes) {
    shown.pop_back();
  }
  const auto left_out = [&shown](const Span& span) {
    return std::find(shown.begin(), shown.end(), span.instance) == shown.end();
  };
  spans.erase(std::remove_if(spans.begin(), spans.end(), left_out), spans.end());
  return static_cast<std::int64_t>(shown.size());
}

TraceOptions trace_options(const Scenario& scenario, const Simulation& simulation, int steps) {
  TraceOptions options;
  options.title = scenario.name;
  options.steps = steps;
  nlohmann::ordered_json metadata;
  metadata["scenario"] = scenario.name;
  metadata["seed"] = scenario.seed;
  metadata["version"] = version();
  options.metadata_json = metadata.dump();
  options.gpu_memory = scenario.cluster.hardware.gpu.memory_reported.value;
  options.gpu_name = scenario.cluster.hardware.gpu.display_name;
  options.world_size = scenario.cluster.gpus;
  options.group_sizes = simulation.group_sizes;
  return options;
}

void tell_trace(std::int64_t shown, std::int64_t ranks, std::size_t bytes) {
  std::fprintf(stderr,
               "trace: %s of %s %s, %s of JSON\n",
               with_commas(shown).c_str(),
               with_commas(ranks).c_str(),
               plural("rank", ranks).c_str(),
               human_bytes(static_cast<std::int64_t>(bytes)).c_str());
}

int write_trace_text(const std::string& target, const std::string& text) {
  if (target == "-") {
    return write_output("-", text);
  }
  const Expected<bool> written = write_text_file(target, text);
  return written ? kExitDone : report_faults(written.error(), target, "");
}

}  // namespace foretrain
