// What kernels and transfers that run beside one another cost each other: the model's factors by
// hand, the limits of overlap, and what they do to a step.
#include "sim/simulate/contention.h"

#include "tests/support/tiny_program.h"

#include "foretrain/simulate.h"
#include "sim/program/stretch.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

Scenario scenario_with(const std::vector<std::string>& overrides) {
  Expected<Scenario> scenario = read_scenario("llama3-8b-8", overrides);
  EXPECT_TRUE(scenario.has_value());
  return scenario ? *std::move(scenario) : Scenario{};
}

StepReport report_of(const Scenario& scenario) {
  Expected<Simulation> simulation = simulate(scenario);
  EXPECT_TRUE(simulation.has_value());
  return simulation ? std::move(simulation->report) : StepReport{};
}

Task kernel_of(Resource resource) {
  Task task;
  task.work[static_cast<std::size_t>(resource)] = 1000;
  return task;
}

Task transfer_of(std::int64_t bytes) {
  Task task;
  task.kind = TaskKind::kCollective;
  task.stream = kTp;
  task.bytes = bytes;
  return task;
}

// Rule: a tensor kernel has the SMs that a collective leaves it; a kernel bound by memory and a
// transfer share HBM in proportion to what each asks for. An A100 of 108 SMs and 2039 GB/s x .88
// beside a collective on 24 SMs that sends 235 GB/s and moves each byte 2.5 times.
TEST(Contention, FactorsByHand) {
  const Scenario scenario =
      scenario_with({"cluster.topology=dgx-a100-hdr200", "overlap.contention=modelled"});
  const ContentionModel model(scenario);
  ASSERT_TRUE(model.active());
  const Pressure pressure = model.pressure(transfer_of(235'000'000), 1e-3);
  EXPECT_EQ(pressure.multiprocessors, 24);
  EXPECT_EQ(pressure.traffic, 587'500'000'000);
  const double share = 587.5 / (2039 * 0.88);
  EXPECT_DOUBLE_EQ(model.kernel_factor(kernel_of(Resource::kTensor), pressure), 108.0 / 84.0);
  EXPECT_DOUBLE_EQ(model.kernel_factor(kernel_of(Resource::kMemory), pressure), 1 + share);
  EXPECT_DOUBLE_EQ(model.kernel_factor(kernel_of(Resource::kOptimizer), pressure), 1 + share);
  EXPECT_EQ(model.kernel_factor(kernel_of(Resource::kLatency), pressure), 1.0);
  EXPECT_DOUBLE_EQ(model.transfer_factor(kernel_of(Resource::kMemory), pressure), 1 + share);
  EXPECT_EQ(model.transfer_factor(kernel_of(Resource::kTensor), pressure), 1.0);
  // Together they use all of it: the kernel 1 / (1 + share), the transfer share / (1 + share).
}

/// A kernel of 1000 and a collective beside its first `transfer` picoseconds, stretched; the
/// call's stretch of the kernel.
double stretch_beside(std::int64_t transfer,
                      double factor,
                      std::vector<std::int32_t> settled = {}) {
  TinyProgram tiny;
  // Both begin when the step before has ended.
  TinyTask beside = collective(kTp, transfer);
  beside.after_previous = {2};
  const std::int32_t list = tiny.list({compute(1'000'000), beside, compute(1, {1})});
  tiny.instance(list, {0, -1});
  Program folded = fold(tiny.program).program;
  const Scenario scenario = scenario_with({"overlap.contention=" + std::to_string(factor)});
  settle_contention(scenario, settled, {}, tiny.program, folded);
  EXPECT_EQ(program_faults(tiny.program), std::vector<std::string>{});
  const Call& call = tiny.program.templates[0].calls[0];
  EXPECT_EQ(call.kernel_stretch, folded.templates[0].calls[0].kernel_stretch);
  EXPECT_EQ(tiny.program.templates[0].calls[1].transfer_stretch, kUnitFactor);
  return static_cast<double>(call.kernel_stretch) / kUnitFactor;
}

// Rule: overlap of nothing costs nothing; overlap of all costs the factor; what lies between lies
// between and grows with the overlap.
TEST(Contention, LimitsOfOverlap) {
  EXPECT_EQ(stretch_beside(0, 1.5), 1.0);
  EXPECT_NEAR(stretch_beside(3'000'000, 1.5), 1.5, 1e-5);
  double before = 1.0;
  for (std::int64_t transfer = 100'000; transfer <= 1'500'000; transfer += 100'000) {
    const double now = stretch_beside(transfer, 1.5);
    EXPECT_GE(now, before) << transfer;
    EXPECT_LE(now, 1.5 + 1e-5);
    before = now;
  }
}

// Rule: a kernel that a transfer of t slows by f for its first part ends at 1000 + t (1 - 1/f).
TEST(Contention, PassesComeCloseToTheRates) {
  for (const std::int64_t transfer : {200'000, 500'000, 900'000}) {
    for (const double factor : {1.1, 1.3, 1.6}) {
      const double exact = 1.0 + 1e-6 * static_cast<double>(transfer) * (1.0 - 1.0 / factor);
      EXPECT_NEAR(stretch_beside(transfer, factor), exact, 0.03 * exact)
          << transfer << " " << factor;
    }
  }
}

TEST(Contention, WhatBearsItAlreadyIsNotCountedTwice) {
  EXPECT_EQ(stretch_beside(3'000'000, 1.5, {0}), 1.0);
}

Duration step_with(const std::string& contention, std::vector<std::string> overrides = {}) {
  overrides.push_back("overlap.contention=" + contention);
  return report_of(scenario_with(overrides)).step_time;
}

// Rule: the step grows with the factor; none is the factor 1; what nothing runs beside is as it
// was.
TEST(Contention, StepsGrowWithTheFactor) {
  const std::vector<std::string> fsdp = {"parallelism.sharding=zero3", "parallelism.tp=1"};
  Duration before = step_with("none", fsdp);
  EXPECT_EQ(step_with("1", fsdp), before);
  EXPECT_GT(step_with("modelled", fsdp), before);
  for (const char* factor : {"1.1", "1.3", "1.6", "2"}) {
    const Duration now = step_with(factor, fsdp);
    EXPECT_GT(now, before) << factor;
    before = now;
  }
  const std::vector<std::string> exposed = {
      "parallelism.tp=1", "overlap.dp_grad=false", "overlap.dp_param=false"};
  EXPECT_EQ(step_with("2", exposed), step_with("none", exposed));
}

// Rule: two passes are enough, along pipelines too, where each rank waits for others' kernels.
TEST(Contention, PassesSettle) {
  for (const char* name : {"llama3-405b-8k", "gpt3-175b-1024-a100", "llama3-70b-64"}) {
    const StepReport report = report_of(read_scenario(name).value());
    const auto tells = [](const std::vector<std::string>& lines, const char* words) {
      return std::any_of(lines.begin(), lines.end(), [words](const std::string& line) {
        return line.find(words) != std::string::npos;
      });
    };
    EXPECT_TRUE(tells(report.assumed, "slower for the transfers beside them")) << name;
    EXPECT_FALSE(tells(report.notes, "not settled")) << name;
  }
}

// Rule: what kernels lose does not hang on how many classes of ranks there are to watch: a worse
// fabric never makes a step faster.
TEST(Contention, AWorseFabricIsNoReliefToKernels) {
  const auto step_of = [](const std::string& more) {
    SimulateOptions options;
    options.times_only = true;
    return simulate(read_scenario("llama3-70b-64", {more}).value(), options)->report.step_time;
  };
  const auto slow = [](const char* factor) {
    return R"(perturbations=[{"kind": "slow_link", "link": "n0.nic0>leaf0.0", "factor": )" +
           std::string(factor) + "}]";
  };
  const Duration whole = step_of("seed=0");
  const Duration twice = step_of(slow("2"));
  EXPECT_GT(twice, whole);
  EXPECT_GT(step_of(slow("4")), twice);
  EXPECT_GT(step_of("cluster.fabric.nics_per_node=3"), whole);
}

// Rule: a GPU's file without these constants slows nothing and says so.
TEST(Contention, UnknownHardwareIsToldOf) {
  Scenario scenario = scenario_with(
      {"parallelism.sharding=zero3", "parallelism.tp=1", "overlap.contention=modelled"});
  scenario.cluster.hardware.gpu.collective_multiprocessors = 0;
  const StepReport unknown = report_of(scenario);
  scenario.overlap.contention = 1.0;
  EXPECT_EQ(unknown.step_time, report_of(scenario).step_time);
  bool told = false;
  for (const std::string& note : unknown.notes) {
    told = told || note.find("states no multiprocessors") != std::string::npos;
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace foretrain
