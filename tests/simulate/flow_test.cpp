#include "tests/support/scenarios.h"
#include "tests/support/small_experts.h"

#include "foretrain/topology.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

/// Network mode "flow": transfers slow each other where they share a link, and nowhere else.
namespace foretrain {
namespace {

using test::TinyScenario;

constexpr const char* kFlow = R"(, "network": {"mode": "flow"})";

TinyScenario in_flow_mode(TinyScenario tiny) {
  tiny.more += kFlow;
  return tiny;
}

void expect_equal(const TinyScenario& tiny, const std::string& what) {
  SCOPED_TRACE(what);
  const StepReport analytic = tiny.run().report;
  const StepReport flow = in_flow_mode(tiny).run().report;
  EXPECT_EQ(analytic.step_time, flow.step_time);
  EXPECT_EQ(analytic.isolated_step, flow.isolated_step);
  for (const BreakdownPart& part : breakdown_parts()) {
    EXPECT_EQ(analytic.breakdown.*part.member, flow.breakdown.*part.member) << part.key;
  }
  const bool shares = tiny.costs.find("free") == std::string::npos;
  EXPECT_EQ(flow.simulation.evaluator, shares ? "event" : "dataflow");
}

TEST(FlowMode, IsTheAnalyticStepWhereNothingIsShared) {
  TinyScenario tiny;
  expect_equal(tiny, "dp alone in a node");
  tiny.tp = 8;
  expect_equal(tiny, "tp alone in a node");
  tiny.gpus = 16;
  expect_equal(tiny, "tp in nodes, dp between them");
  tiny.pp = 2;
  expect_equal(tiny, "tp in nodes, pp between them");
  tiny.schedule = "zb-h1";
  expect_equal(tiny, "split backwards");
  tiny = {};
  tiny.costs = R"({"model": "constant", "communication": "free"})";
  tiny.gpus = 16;
  tiny.pp = 2;
  expect_equal(tiny, "free communication");
}

/// Words about links do not depend on how many ranks stand for all: nothing but the account of the
/// run itself does. Each GPU of the first two jobs uses six links: to its switch, to its NIC and on
/// to the leaf of its rail, both ways.
TEST(FlowMode, EveryRankGivesTheSameReport) {
  struct Job {
    Scenario scenario;
    std::string links;
  };
  const auto shipped = [](const std::string& name) {
    return read_scenario(name, {"training.global_batch_size=64", "network.mode=flow"}).value();
  };
  const std::vector<std::string> hashed = {
      "network.mode=flow", "network.routing=hashed", "parallelism.ep=16"};
  for (const Job& job :
       {Job{shipped("llama3-70b-64"), "; 384 links carry them, "},
        Job{shipped("mixtral-8x22b"), "; 768 links carry them, "},
        Job{test::read_with(test::kSmallExperts, hashed), " links carry them, "}}) {
    std::string reports[2];
    for (const bool all_ranks : {false, true}) {
      SimulateOptions options;
      options.all_ranks = all_ranks;
      StepReport report = simulate(job.scenario, options)->report;
      report.simulation = {};
      reports[all_ranks ? 1 : 0] = report_json(report);
    }
    EXPECT_EQ(reports[0], reports[1]) << job.scenario.name;
    EXPECT_NE(reports[0].find(job.links), std::string::npos) << reports[0];
  }
}

/// Kernels and transfers beside one another cost each other in both modes alike.
TEST(FlowMode, SlowsKernelsAsTheAnalyticStepDoes) {
  const auto report_of = [](const std::string& contention, const char* mode) {
    const std::vector<std::string> sets = {"overlap.contention=" + contention,
                                           std::string("network.mode=") + mode};
    return simulate(read_scenario("llama3-8b-fsdp", sets).value())->report;
  };
  const Duration none = report_of("none", "flow").step_time;
  for (const char* contention : {"modelled", "1.5"}) {
    const StepReport flow = report_of(contention, "flow");
    EXPECT_GT(flow.step_time, none) << contention;
    EXPECT_EQ(flow.step_time, report_of(contention, "analytic").step_time) << contention;
    EXPECT_EQ(flow.simulation.evaluator, "event");
  }
}

/// An NVLink switch that reduces moves more a second than its links send: a ring's pattern must not
/// make it wait for itself.
TEST(FlowMode, ReductionsInTheSwitchAreNotHeldUp) {
  const std::vector<std::string> sets = {
      "parallelism.tp=8", "parallelism.sequence_parallel=false", "training.global_batch_size=4"};
  const auto step = [&sets](const char* mode) {
    std::vector<std::string> with_mode = sets;
    with_mode.push_back(std::string("network.mode=") + mode);
    return simulate(read_scenario("llama3-8b-8", with_mode).value())->report.step_time;
  };
  EXPECT_EQ(step("flow"), step("analytic"));
}

/// dp and pp both leave the node by the same NICs; reductions run under the last backwards.
TinyScenario crowded() {
  TinyScenario tiny;
  tiny.gpus = 32;
  tiny.tp = 8;
  tiny.pp = 2;
  tiny.batch = 16;
  tiny.layers = 16;
  return tiny;
}

TEST(FlowMode, ReductionsAndMessagesOfOneNicSlowEachOther) {
  const StepReport analytic = crowded().run().report;
  const Simulation flow = in_flow_mode(crowded()).run();
  EXPECT_GT(flow.report.step_time, analytic.step_time);
  // What is sent does not change, and no link carries more than it can.
  ASSERT_EQ(flow.report.network.size(), analytic.network.size());
  for (std::size_t row = 0; row < analytic.network.size(); ++row) {
    EXPECT_EQ(flow.report.network[row].bytes, analytic.network[row].bytes);
  }
  const double step = seconds(flow.report.step_time);
  ASSERT_EQ(flow.timeline.link_bytes.size(), flow.program.links.size());
  for (std::size_t link = 0; link < flow.program.links.size(); ++link) {
    EXPECT_GT(flow.timeline.link_bytes[link], 0.0) << flow.program.links[link].id;
    EXPECT_LE(flow.timeline.link_bytes[link], flow.program.links[link].capacity * step)
        << flow.program.links[link].id;
  }
}

TEST(FlowMode, EveryRankAloneIsWhatItsClassIs) {
  SimulateOptions all;
  all.all_ranks = true;
  for (const std::int64_t pp : {1, 2, 4}) {
    TinyScenario tiny = in_flow_mode(crowded());
    tiny.pp = pp;
    const Simulation every = tiny.run(all);
    const Simulation classes = tiny.run();
    EXPECT_EQ(every.report.step_time, classes.report.step_time) << "pp " << pp;
    EXPECT_EQ(every.report.isolated_step, classes.report.isolated_step) << "pp " << pp;
    for (const BreakdownPart& part : breakdown_parts()) {
      EXPECT_EQ(every.report.breakdown.*part.member, classes.report.breakdown.*part.member)
          << part.key << ", pp " << pp;
    }
    EXPECT_LT(classes.program.instances.size(), every.program.instances.size());
  }
}

Simulation simulated(const Scenario& scenario, bool all_ranks) {
  SimulateOptions options;
  options.all_ranks = all_ranks;
  Expected<Simulation> simulation = simulate(scenario, options);
  EXPECT_TRUE(simulation.has_value());
  return simulation ? std::move(*simulation) : Simulation{};
}

/// Eight nodes, two to a leaf group; experts of a layer on all of them.
Scenario experts_over_leaves(double oversubscription) {
  Expected<Scenario> scenario = parse_scenario(R"({"name": "experts", "model": "mixtral-8x7b",
    "cluster": {"topology": "dgx-h100-ndr400", "gpus": 64},
    "training": {"sequence_length": 2048, "global_batch_size": 16},
    "parallelism": {"tp": 8, "ep": 8, "etp": 8}, "network": {"mode": "flow"}})");
  EXPECT_TRUE(scenario.has_value());
  scenario->cluster.hardware.nodes_per_leaf_group = 2;
  scenario->cluster.hardware.oversubscription = oversubscription;
  return *scenario;
}

TEST(FlowMode, ThinSpinesSlowAnAllToAllAndEveryRankAlike) {
  const Simulation even = simulated(experts_over_leaves(1.0), false);
  const Simulation thin = simulated(experts_over_leaves(4.0), false);
  EXPECT_GT(thin.report.breakdown.ep, even.report.breakdown.ep);
  const double step = seconds(thin.report.step_time);
  bool spine = false;
  for (std::size_t link = 0; link < thin.program.links.size(); ++link) {
    EXPECT_LE(thin.timeline.link_bytes[link], thin.program.links[link].capacity * step);
    spine = spine || thin.program.links[link].id.find(">spine") != std::string::npos;
  }
  EXPECT_TRUE(spine) << "the traffic crosses the spines";
  const Simulation every = simulated(experts_over_leaves(4.0), true);
  EXPECT_EQ(every.report.step_time, thin.report.step_time);
  EXPECT_EQ(every.report.breakdown.ep, thin.report.breakdown.ep);
  EXPECT_EQ(every.program.instances.size(), 64U);
  EXPECT_LT(thin.program.instances.size(), 64U);
}

TEST(FlowMode, EveryRankOfAJobOf128IsWhatItsClassIs) {
  const Expected<Scenario> read = read_scenario("mixtral-8x22b", {"training.global_batch_size=64"});
  ASSERT_TRUE(read.has_value());
  Scenario scenario = *read;
  scenario.network.mode = "flow";
  scenario.overlap.contention = 1.0;
  const Simulation every = simulated(scenario, true);
  const Simulation classes = simulated(scenario, false);
  EXPECT_EQ(every.timeline.step_ends, classes.timeline.step_ends);
  EXPECT_EQ(every.report.isolated_step, classes.report.isolated_step);
  for (const BreakdownPart& part : breakdown_parts()) {
    EXPECT_EQ(every.report.breakdown.*part.member, classes.report.breakdown.*part.member)
        << part.key;
  }
  EXPECT_LT(classes.program.instances.size() * 8, every.program.instances.size());
}

/// Half as many NICs as GPUs: messages of two stages' neighbours meet on each.
TEST(FlowMode, NeighboursThatShareANicAreOneClass) {
  TinyScenario tiny = in_flow_mode({});
  tiny.gpus = 32;
  tiny.tp = 4;
  tiny.pp = 4;
  tiny.layers = 16;
  Scenario scenario = tiny.read();
  scenario.cluster.hardware.nics_per_node = 4;
  const Simulation every = simulated(scenario, true);
  const Simulation classes = simulated(scenario, false);
  EXPECT_EQ(every.report.step_time, classes.report.step_time);
  EXPECT_EQ(every.report.isolated_step, classes.report.isolated_step);
  EXPECT_LT(classes.program.instances.size(), 32U);
}

TEST(FlowMode, TwoRunsGiveTheSameReport) {
  const StepReport once = in_flow_mode(crowded()).run().report;
  const StepReport again = in_flow_mode(crowded()).run().report;
  EXPECT_EQ(once.step_time, again.step_time);
  EXPECT_EQ(once.notes, again.notes);
  ASSERT_EQ(once.critical_path.size(), again.critical_path.size());
}

TEST(FlowMode, RunsEveryQuestionOfAReport) {
  TinyScenario tiny = in_flow_mode(crowded());
  tiny.more += R"(, "perturbations": [{"kind": "slow_gpu", "ranks": [3], "factor": 1.5}])";
  SimulateOptions options;
  options.record = true;
  options.steps = 2;
  const Simulation simulation = tiny.run(options);
  Duration sum{};
  for (const BreakdownPart& part : breakdown_parts()) {
    sum += simulation.report.breakdown.*part.member;
  }
  EXPECT_EQ(sum, simulation.report.step_time);
  EXPECT_FALSE(simulation.report.critical_path.empty());
  ASSERT_EQ(simulation.report.stragglers.size(), 1U);
  EXPECT_GT(simulation.report.stragglers.front().cost.count(), 0);
  EXPECT_FALSE(simulation.timeline.spans.empty());
}

TEST(FlowMode, DataflowIsRefused) {
  SimulateOptions options;
  options.evaluator = Evaluator::kDataflow;
  const Expected<Simulation> refused = simulate(in_flow_mode(crowded()).read(), options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().list.front().pointer, "/network/mode");
}

}  // namespace
}  // namespace foretrain
