#include "tests/report/tiny_run.h"

#include "foretrain/report.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

struct TinyTrace {
  explicit TinyTrace(const TinyShape& shape = {}, int steps = 2)
      : program(tiny_program(shape)), timeline(tiny_timeline(program, steps)) {
    TraceOptions options;
    options.title = "tiny";
    options.steps = steps;
    options.metadata_json = R"({"seed": 7})";
    options.gpu_name = "H100 \"SXM\"";
    options.gpu_memory = 80'000'000'000;
    options.world_size = 4;
    text = chrome_trace(program, timeline, options);
    json = Json::parse(text);
  }
  std::vector<Json> events(const std::string& phase, const std::string& category = "") const {
    std::vector<Json> found;
    for (const Json& event : json["traceEvents"]) {
      if (event["ph"] == phase && (category.empty() || event["cat"] == category)) {
        found.push_back(event);
      }
    }
    return found;
  }
  Program program;
  Timeline timeline;
  std::string text;
  Json json;
};

std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// Kineto writes its top-level keys in this order and readers find the rank by a text search that
// wants white space after the colon.
TEST(Trace, HasKinetosTopLevel) {
  const TinyTrace trace;
  std::vector<std::string> keys;
  for (const auto& item : trace.json.items()) {
    keys.push_back(item.key());
  }
  EXPECT_EQ(keys,
            (std::vector<std::string>{"schemaVersion",
                                      "deviceProperties",
                                      "distributedInfo",
                                      "displayTimeUnit",
                                      "baseTimeNanoseconds",
                                      "metadata",
                                      "traceEvents",
                                      "traceName"}));
  EXPECT_NE(trace.text.find("\"rank\": 0"), std::string::npos);
  EXPECT_EQ(trace.json["deviceProperties"][0]["name"], "H100 \"SXM\"");
  EXPECT_EQ(trace.json["metadata"]["seed"], 7);
}

// One slice for each task that took time, at the rounded start and end of its span.
TEST(Trace, DrawsEachSpanOnItsStream) {
  const TinyTrace trace;
  using Slice = std::tuple<int, int, std::int64_t, std::int64_t>;
  std::multiset<Slice> expected;
  for (const Span& span : trace.timeline.spans) {
    const Template& list = trace.program.templates[static_cast<std::size_t>(
        trace.program.instances[static_cast<std::size_t>(span.instance)].template_index)];
    const Call& call = list.calls[static_cast<std::size_t>(span.call)];
    const Task& task = trace.program.blocks[static_cast<std::size_t>(call.block)]
                           .tasks[static_cast<std::size_t>(span.task)];
    // Half up; the run starts at zero, so instants are trace times.
    const auto round = [](Instant time) { return (time.time_since_epoch().count() + 500) / 1000; };
    expected.insert(
        {span.instance, task.stream + 1, round(span.start), round(span.end) - round(span.start)});
  }
  std::multiset<Slice> drawn;
  for (const Json& event : trace.events("X", "kernel")) {
    drawn.insert({event["pid"].get<int>(),
                  event["tid"].get<int>(),
                  nanoseconds(event["ts"]),
                  nanoseconds(event["dur"])});
  }
  EXPECT_EQ(drawn, expected);
}

// The names readers classify by: compute by its label, everything of NCCL by its kernel.
TEST(Trace, NamesKernelsSoThatReadersKnowThem) {
  const TinyTrace trace;
  std::map<int, std::set<std::string>> names;
  for (const Json& event : trace.events("X", "kernel")) {
    names[event["tid"].get<int>()].insert(event["name"].get<std::string>());
  }
  EXPECT_EQ(names[1], (std::set<std::string>{"qkv", "adamw"}));
  EXPECT_EQ(names[2],
            (std::set<std::string>{"ncclDevKernel_AllGather_RING_LL",
                                   "ncclDevKernel_ReduceScatter_Sum_RING_LL"}));
  for (int tid = 3; tid <= 6; ++tid) {
    EXPECT_EQ(names[tid], (std::set<std::string>{"ncclDevKernel_SendRecv"}));
  }
}

// Two ranks of a group arrive apart; the wait is told apart from the transfer.
TEST(Trace, TellsWaitingFromTransfer) {
  const TinyTrace trace;
  std::int64_t waited = 0;
  std::int64_t expected = 0;
  for (const Json& event : trace.events("X", "kernel")) {
    if (event["tid"] == 2) {
      waited += event["args"]["wait_ns"].get<std::int64_t>();
      EXPECT_EQ(event["args"]["Group size"], 2);
      EXPECT_EQ(event["args"]["Process Group Name"], "tp");
    }
  }
  for (const Span& span : trace.timeline.spans) {
    expected += (span.transfer_start - span.start).count();
  }
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(static_cast<double>(waited) * 1000, static_cast<double>(expected), 1000.0 * 48);
}

// Rank 0 of stage 0 runs forwards 0F0, 0F1, 0F2, backwards 0B0 .. and the optimizer, twice.
TEST(Trace, NamesActionsAndSteps) {
  const TinyTrace trace;
  std::vector<std::string> actions;
  for (const Json& event : trace.events("X", "gpu_user_annotation")) {
    if (event["pid"] == 0) {
      actions.push_back(event["name"].get<std::string>());
    }
  }
  const std::vector<std::string> step = {"0F0", "0F1", "0F2", "0B0", "0B1", "0B2", "optimizer"};
  std::vector<std::string> expected = step;
  expected.insert(expected.end(), step.begin(), step.end());
  EXPECT_EQ(actions, expected);

  std::vector<std::string> steps;
  std::int64_t end = 0;
  for (const Json& event : trace.events("X", "user_annotation")) {
    if (event["pid"] == 3) {
      steps.push_back(event["name"].get<std::string>());
      EXPECT_EQ(nanoseconds(event["ts"]), end);
      end += nanoseconds(event["dur"]);
    }
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"ProfilerStep#1", "ProfilerStep#2"}));
}

// Every send of the pipeline reaches its receive by one arrow that never runs back in time.
TEST(Trace, DrawsAnArrowForEachMessage) {
  const TinyShape shape;
  const TinyTrace trace(shape);
  std::map<std::int64_t, Json> leaves;
  for (const Json& event : trace.events("s")) {
    EXPECT_TRUE(leaves.emplace(event["id"].get<std::int64_t>(), event).second);
  }
  // 2 directions x 1 boundary x 3 micro-batches x 2 tensor ranks x 2 steps.
  EXPECT_EQ(leaves.size(), 24u);
  EXPECT_EQ(trace.events("f").size(), 24u);
  for (const Json& event : trace.events("f")) {
    const Json& leave = leaves.at(event["id"].get<std::int64_t>());
    EXPECT_EQ(event["bp"], "e");
    EXPECT_GE(nanoseconds(event["ts"]), nanoseconds(leave["ts"]));
    // Stage 0 is ranks 0, 1 and stage 1 ranks 2, 3; tensor rank t talks to tensor rank t.
    EXPECT_EQ(std::abs(event["pid"].get<int>() - leave["pid"].get<int>()), 2);
  }
}

// A receive whose sender was not recorded gets no arrow: none may dangle.
TEST(Trace, LeavesOutArrowsWithOneEnd) {
  TinyTrace trace;
  std::erase_if(trace.timeline.spans, [](const Span& span) { return span.instance >= 2; });
  const std::string text =
      chrome_trace(trace.program, trace.timeline, {"", 2, "", 0, "", 1, {}, {}});
  EXPECT_EQ(text.find("\"ph\":\"s\""), std::string::npos);
  EXPECT_EQ(text.find("\"ph\":\"f\""), std::string::npos);
  EXPECT_NE(text.find("ncclDevKernel_SendRecv"), std::string::npos);
}

// Free communication takes no time and is not drawn; receives still show how long they waited.
TEST(Trace, LeavesOutWhatTakesNoTime) {
  TinyShape shape;
  shape.send_time = 0;
  const TinyTrace trace(shape);
  for (const Json& event : trace.events("X", "kernel")) {
    EXPECT_NE(event["tid"], 3);
    EXPECT_NE(event["tid"], 4);
    EXPECT_GT(event["dur"].get<double>(), 0.0);
  }
  EXPECT_TRUE(trace.events("s").empty());
}

// Three forwards hold a gigabyte each until their backwards give it back.
TEST(Trace, CountsMemoryBackToItsBase) {
  const TinyTrace trace;
  std::map<int, std::int64_t> peak;
  std::map<int, std::int64_t> last;
  for (const Json& event : trace.events("C")) {
    const int rank = event["pid"].get<int>();
    last[rank] = event["args"]["bytes"].get<std::int64_t>();
    peak[rank] = std::max(peak[rank], last[rank]);
  }
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(peak[rank], 23'000'000'000);
    EXPECT_EQ(last[rank], 20'000'000'000);
  }
}

// A trace shows the steps it was asked for and no more.
TEST(Trace, ShowsOnlyTheStepsAsked) {
  const TinyTrace two;
  TraceOptions options;
  const Json one = Json::parse(chrome_trace(two.program, two.timeline, options));
  int steps = 0;
  for (const Json& event : one["traceEvents"]) {
    steps += event.contains("cat") && event["cat"] == "user_annotation" ? 1 : 0;
    if (event.contains("args") && event["args"].contains("step")) {
      EXPECT_EQ(event["args"]["step"], 1);
    }
  }
  EXPECT_EQ(steps, 4);
}

// In speedscope's format every event that opens is closed, in order of time and nesting, and the
// kernels of a rank's compute stream last as long as its spans, each rounded.
TEST(Speedscope, BalancesAndKeepsTimes) {
  const TinyTrace trace;
  TraceOptions options;
  options.steps = 2;
  const Json json = Json::parse(speedscope_profile(trace.program, trace.timeline, options));
  // 4 ranks x compute and tp, a send and a receive stream each.
  EXPECT_EQ(json["profiles"].size(), 16u);
  for (const Json& profile : json["profiles"]) {
    std::vector<std::int64_t> open;
    std::int64_t now = profile["startValue"];
    for (const Json& event : profile["events"]) {
      EXPECT_GE(event["at"], now);
      now = event["at"];
      if (event["type"] == "O") {
        open.push_back(event["frame"]);
      } else {
        ASSERT_FALSE(open.empty());
        EXPECT_EQ(event["frame"], open.back());
        open.pop_back();
      }
    }
    EXPECT_TRUE(open.empty());
    EXPECT_EQ(now, profile["endValue"]);
  }
  std::set<std::string> names;
  for (const Json& frame : json["shared"]["frames"]) {
    names.insert(frame["name"].get<std::string>());
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"0F",
                                   "0B",
                                   "1F",
                                   "1B",
                                   "optimizer",
                                   "qkv",
                                   "adamw",
                                   "hop",
                                   "tp all-gather",
                                   "tp reduce-scatter"}));
}

// The forecast made before anything ran is within 5 % of the file.
TEST(Trace, SizeIsForetold) {
  for (const int micro_batches : {2, 30}) {
    for (const int steps : {1, 3}) {
      TinyShape shape;
      shape.stages = 4;
      shape.micro_batches = micro_batches;
      shape.kernels = 6;
      const Program program = tiny_program(shape);
      const Timeline timeline = tiny_timeline(program, steps);
      std::vector<std::int32_t> instances;
      for (std::size_t i = 0; i < program.instances.size(); ++i) {
        instances.push_back(static_cast<std::int32_t>(i));
      }
      TraceOptions options;
      options.steps = steps;
      const auto actual = static_cast<double>(chrome_trace(program, timeline, options).size());
      const auto foretold = static_cast<double>(predict_trace_bytes(program, instances, steps));
      EXPECT_NEAR(foretold / actual, 1.0, 0.05) << micro_batches << " micro-batches, " << steps;
    }
  }
}

}  // namespace
}  // namespace foretrain
