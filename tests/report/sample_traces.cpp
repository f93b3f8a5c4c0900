#include "tests/report/tiny_run.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace foretrain {
namespace {

/// The steps after `warm_up` as measured ones, numbered from 0.
Timeline measured(const Timeline& all, int warm_up) {
  Timeline timeline = all;
  std::erase_if(timeline.spans, [&](const Span& span) { return span.step < warm_up; });
  for (Span& span : timeline.spans) {
    span.step -= warm_up;
  }
  timeline.step_ends.erase(timeline.step_ends.begin(), timeline.step_ends.begin() + warm_up);
  for (auto& ends : timeline.instance_step_ends) {
    ends.erase(ends.begin(), ends.begin() + warm_up);
  }
  return timeline;
}

/// What the report of this timeline must say, summed span by span.
StepReport tally(const Program& program, const Timeline& timeline, int steps, int tensor) {
  StepReport report;
  const auto ranks = static_cast<std::int64_t>(program.instances.size());
  std::vector<Duration> busy(program.templates.size());
  Duration transfer{};
  for (const Span& span : timeline.spans) {
    const Instance& instance = program.instances[static_cast<std::size_t>(span.instance)];
    const auto stage = static_cast<std::size_t>(instance.template_index);
    const Call& call = program.templates[stage].calls[static_cast<std::size_t>(span.call)];
    const Task& task = program.blocks[static_cast<std::size_t>(call.block)]
                           .tasks[static_cast<std::size_t>(span.task)];
    busy[stage] += task.stream == 0 ? span.end - span.start : Duration{0};
    transfer += task.kind == TaskKind::kCollective ? span.end - span.transfer_start : Duration{0};
  }
  report.step_time = (timeline.step_ends.back() - timeline.step_ends.front()) / steps;
  for (std::size_t stage = 0; stage < busy.size(); ++stage) {
    StageReport row;
    row.pp_rank = static_cast<std::int32_t>(stage);
    row.busy = busy[stage] / (tensor * steps);
    report.breakdown.compute += busy[stage] / (ranks * steps);
    report.stages.push_back(row);
  }
  NetworkReport tp;
  tp.group = "tp";
  tp.exposed = transfer / (ranks * steps);
  report.network.push_back(tp);
  report.breakdown.bubble = report.step_time - report.breakdown.compute;
  report.steps.n = steps;
  report.simulation.ranks_total = ranks;
  return report;
}

/// Writes FOLDER/NAME.json, .json.gz and .report.json; returns what went wrong.
bool write_sample(const std::string& folder, const std::string& name, TinyShape shape, int steps) {
  constexpr int kWarmUp = 4;
  const Program program = tiny_program(shape);
  const Timeline timeline = measured(tiny_timeline(program, kWarmUp + steps), kWarmUp);
  TraceOptions options;
  options.title = name;
  options.steps = steps;
  options.metadata_json = R"({"seed": 0, "version": "test"})";
  options.gpu_name = "H100 SXM";
  options.gpu_memory = 80'000'000'000;
  options.world_size = static_cast<std::int64_t>(program.instances.size());
  const std::string trace = chrome_trace(program, timeline, options);
  const std::string report = report_json(tally(program, timeline, steps, shape.tensor));
  const std::string path = folder + "/" + name;
  const std::string profile = speedscope_profile(program, timeline, options);
  return write_text_file(path + ".json", trace).has_value() &&
         write_text_file(path + ".speedscope.json", profile).has_value() &&
         write_text_file(path + ".json.gz", trace).has_value() &&
         write_text_file(path + ".report.json", report).has_value();
}

}  // namespace
}  // namespace foretrain

/// sample_traces FOLDER: traces for readers that are not ours.
int main(int argc, char** argv) {
  using foretrain::TinyShape;
  using foretrain::write_sample;
  if (argc != 2) {
    std::fprintf(stderr, "usage: sample_traces FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  TinyShape small;
  TinyShape deep;
  deep.stages = 4;
  deep.micro_batches = 8;
  deep.kernels = 5;
  TinyShape quick;  // hops shorter than a nanosecond: arrows must still run forward
  quick.stages = 3;
  quick.send_time = 300;
  TinyShape lone;
  lone.stages = 1;
  lone.tensor = 1;
  const bool good =
      write_sample(folder, "small", small, 2) && write_sample(folder, "deep", deep, 3) &&
      write_sample(folder, "quick", quick, 2) && write_sample(folder, "lone", lone, 1);
  return good ? 0 : 1;
}
