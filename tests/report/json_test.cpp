#include "tests/report/tiny_run.h"

#include "foretrain/report.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) {
    names.push_back(item.key());
  }
  return names;
}

/// `wanted` stands in `have` in this order; `have` may hold more.
bool in_order(const std::vector<std::string>& wanted, const std::vector<std::string>& have) {
  std::size_t next = 0;
  for (const std::string& name : have) {
    next += next < wanted.size() && name == wanted[next] ? 1 : 0;
  }
  return next == wanted.size();
}

// The keys scripts read, in the documented order.
TEST(ReportJson, HasTheDocumentedKeys) {
  const Json json = Json::parse(report_json(sample_report()));
  EXPECT_TRUE(in_order({"scenario",
                        "step_time_s",
                        "isolated_step_s",
                        "tokens_per_s",
                        "tokens_per_s_per_gpu",
                        "tflops_per_gpu",
                        "mfu",
                        "hfu",
                        "mfu_by_convention",
                        "peak_tflops",
                        "peak_precision",
                        "flops_per_token",
                        "flops_convention",
                        "parameters",
                        "breakdown_s",
                        "stages",
                        "memory",
                        "network",
                        "critical_path",
                        "stragglers",
                        "steps",
                        "simulation"},
                       keys(json)));
}

TEST(ReportJson, PartsHaveTheDocumentedKeys) {
  const Json json = Json::parse(report_json(sample_report()));
  EXPECT_EQ(keys(json["breakdown_s"]),
            (std::vector<std::string>{"compute",
                                      "recompute",
                                      "tp",
                                      "cp",
                                      "ep",
                                      "pp",
                                      "dp",
                                      "optimizer",
                                      "bubble",
                                      "imbalance",
                                      "straggler",
                                      "other"}));
  EXPECT_EQ(keys(json["mfu_by_convention"]),
            (std::vector<std::string>{"causal", "full", "hardware"}));
  EXPECT_TRUE(in_order(
      {"pp_rank", "layers", "busy_s", "idle_s", "bubble_ratio", "in_flight_peak", "memory_bytes"},
      keys(json["stages"][0])));
  EXPECT_EQ(keys(json["stages"][0]["memory_bytes"]),
            (std::vector<std::string>{"weights",
                                      "gradients",
                                      "optimizer",
                                      "activations",
                                      "logits",
                                      "buffers",
                                      "peak",
                                      "reserved"}));
  EXPECT_EQ(keys(json["memory"]),
            (std::vector<std::string>{"peak_bytes", "peak_stage", "capacity_bytes", "fits"}));
  EXPECT_EQ(keys(json["network"][0]),
            (std::vector<std::string>{"group",
                                      "size",
                                      "inside_node",
                                      "exposed_s",
                                      "hidden_s",
                                      "wait_s",
                                      "bytes",
                                      "bus_bandwidth",
                                      "limiting_link"}));
  EXPECT_EQ(keys(json["steps"]),
            (std::vector<std::string>{
                "n", "mean_s", "stddev_s", "p5_s", "p50_s", "p95_s", "p99_s", "max_s"}));
  EXPECT_EQ(keys(json["simulation"]),
            (std::vector<std::string>{"evaluator",
                                      "ranks_total",
                                      "ranks_simulated",
                                      "tasks",
                                      "wall_s",
                                      "peak_rss_bytes",
                                      "seed",
                                      "version"}));
}

// SI units, numbers that read back exactly, the scenario as an object.
TEST(ReportJson, SaysTheNumbers) {
  const StepReport report = sample_report();
  const Json json = Json::parse(report_json(report));
  EXPECT_EQ(json["step_time_s"].get<double>(), 6.310000000007);
  EXPECT_EQ(json["tokens_per_s"].get<double>(), report.tokens_per_s);
  EXPECT_EQ(json["mfu"].get<double>(), 0.414);
  EXPECT_EQ(json["parameters"], 405'853'388'800);
  EXPECT_EQ(json["scenario"]["parallelism"]["tp"], 8);
  EXPECT_EQ(json["stages"][15]["busy_s"].get<double>(), 5.93);
  EXPECT_EQ(json["memory"]["fits"], "yes");
  EXPECT_EQ(json["network"][1]["limiting_link"], "NIC");
  EXPECT_TRUE(json["blocked"].empty());
}

TEST(ReportJson, PartsAddUpToTheStepAsRead) {
  const Json json = Json::parse(report_json(sample_report()));
  double sum = 0;
  for (const auto& item : json["breakdown_s"].items()) {
    sum += item.value().get<double>();
  }
  EXPECT_EQ(sum, json["step_time_s"].get<double>());
}

// Everything but "simulation" is the same for the same input, byte for byte.
TEST(ReportJson, OnlySimulationTellsHowItWasRun) {
  StepReport first = sample_report();
  StepReport second = sample_report();
  second.simulation = {"event", 1, 1, 2, 3.0, 4, 5, "other"};
  const auto before = [](const std::string& text) {
    return text.substr(0, text.find("\"simulation\""));
  };
  EXPECT_EQ(before(report_json(first)), before(report_json(second)));
  EXPECT_NE(report_json(first), report_json(second));
}

// A run that never ends has no times; what it waits for is in the result.
TEST(ReportJson, TellsADeadlock) {
  StepReport report;
  report.deadlock = true;
  report.blocked = {{"rank 3", "3F5 pp receive", "send of message 12 by rank 7"}};
  const Json json = Json::parse(report_json(report));
  EXPECT_EQ(json["outcome"], "deadlock");
  EXPECT_TRUE(json["step_time_s"].is_null());
  EXPECT_TRUE(json["breakdown_s"].is_null());
  EXPECT_EQ(json["blocked"][0]["waiting_for"], "send of message 12 by rank 7");
}

// Text that is no JSON or no UTF-8 must not end the program.
TEST(ReportJson, SurvivesBrokenText) {
  StepReport report = sample_report();
  report.header.scenario_json = "{";
  report.notes = {"\xff"};
  const Json json = Json::parse(report_json(report));
  EXPECT_TRUE(json["scenario"].empty());
  EXPECT_EQ(json["notes"].size(), 1u);
}

}  // namespace
}  // namespace foretrain
