#include "tests/support/command.h"
#include "tests/support/own_folder.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain collective` answers as nccl-tests would, in the contract's fields, and says of
/// a log what looks sick in it.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

Outcome run(const std::string& line) {
  return test::run_program("collective " + line + " 2>&1");
}

json result(const std::string& line, int code = 0) {
  const Outcome outcome = test::run_program("collective " + line + " --json - 2>/dev/null");
  EXPECT_EQ(outcome.code, code) << line << "\n" << outcome.out;
  return json::parse(outcome.out, nullptr, false);
}

std::string file_of(const std::string& name, const std::string& text) {
  const std::string path = test::own_folder() + name;
  std::ofstream(path) << text;
  return path;
}

const std::string kTwoNodes = "all_reduce --topology dgx-h100-ndr400 --ranks 0-15 ";

TEST(CollectiveCommand, Fields) {
  const json answer = result(kTwoNodes + "--bytes 1GiB");
  EXPECT_EQ(answer["op"], "all_reduce");
  EXPECT_EQ(answer["bytes"], 1 << 30);
  EXPECT_EQ(answer["ranks"], 16);
  EXPECT_EQ(answer["nodes"], 2);
  const double time = answer["time_s"];
  // nccl-tests: busbw = S / t * 2 (n - 1) / n.
  EXPECT_DOUBLE_EQ(answer["algorithm_bandwidth"], 1073741824.0 / time);
  EXPECT_NEAR(answer["bus_bandwidth"], 1073741824.0 / time * 30.0 / 16.0, 1.0);
  EXPECT_EQ(answer["algorithm"], "nvls_tree");
}

// Rule: the link that limits is NVLink inside a node and a NIC's between nodes.
TEST(CollectiveCommand, LimitingLink) {
  const json inside = result("all_gather --topology hgx-h200-ndr400 --ranks 0-7 --bytes 1GiB");
  EXPECT_NE(inside["limiting_link"].get<std::string>().find("nvs"), std::string::npos);
  EXPECT_EQ(inside["algorithm"], "ring");
  const json across = result("all_reduce --topology hgx-h200-ndr400 --ranks 0-31 --bytes 1GiB");
  EXPECT_NE(across["limiting_link"].get<std::string>().find("nic"), std::string::npos);
}

TEST(CollectiveCommand, AlgorithmsByName) {
  const auto time = [](const std::string& name) {
    return result(kTwoNodes + "--bytes 8GiB --algorithm " + name)["time_s"].get<double>();
  };
  // Two nodes send their sum once each instead of going round (NVIDIA/nccl-tests issue 153).
  EXPECT_LT(time("nvls_tree"), time("ring"));
  const Outcome refused = run(kTwoNodes + "--bytes 8GiB --algorithm nvls");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.out.find("what applies: ring, hierarchical, tree, nvls_tree"),
            std::string::npos)
      << refused.out;
  EXPECT_EQ(
      run("all_gather --topology dgx-a100-hdr200 --ranks 0-7 --bytes 1MiB --algorithm tree").code,
      2);
}

TEST(CollectiveCommand, SweepIsATableOfDoublingSizes) {
  const json answer = result(kTwoNodes + "--sweep 1MiB:64MiB");
  ASSERT_EQ(answer["rows"].size(), 7U);
  for (std::size_t at = 0; at < 7; ++at) {
    EXPECT_EQ(answer["rows"][at]["bytes"], std::int64_t{1} << (20 + at));
  }
  EXPECT_EQ(answer["bytes"], 64 << 20);
  const Outcome page = run(kTwoNodes + "--sweep 1MiB:3MiB");
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.out.find("dgx-h100-ndr400: all_reduce of 16 ranks, 8 in each of 2 nodes\n"), 0U)
      << page.out;
  EXPECT_NE(page.out.find("2097152"), std::string::npos);
  EXPECT_EQ(page.out.find("4194304"), std::string::npos);
}

TEST(CollectiveCommand, RefusesByName) {
  struct Case {
    const char* line;
    const char* pointer;
  };
  for (const Case& bad :
       {Case{"all_reduse --topology dgx-h100-ndr400 --ranks 0-7 --bytes 1", "/op"},
        Case{"send_recv --topology dgx-h100-ndr400 --ranks 0-2 --bytes 1", "/ranks"},
        Case{"all_reduce --topology dgx-h100-ndr400 --ranks 7-0 --bytes 1", "/ranks"},
        Case{"all_reduce --topology dgx-h100-ndr400 --gpus 8 --ranks 8 --bytes 1", "/ranks"},
        Case{"all_reduce --topology dgx-h100-ndr400 --ranks 0-7 --bytes 1x", "/bytes"},
        Case{"all_reduce --topology dgx-h100-ndr400 --ranks 0-7", "/bytes"},
        Case{"all_reduce --topology dgx-h100-ndr400 --bytes 1", "/ranks"},
        Case{"all_reduce --topology dgx-h100-ndr400 --ranks 0-7 --sweep 2:1", "/sweep"},
        Case{"all_reduce --topology dgx-h100-ndr400 --ranks 0-7 --sweep 0:8", "/sweep"},
        Case{"all_reduce --topology dgx-h100-ndr400 --ranks 0-3 --beside 3-5 "
             "--bytes 1",
             "/beside"}}) {
    const json refused = result(bad.line, 2);
    ASSERT_FALSE(refused.is_discarded()) << bad.line;
    EXPECT_EQ(refused["faults"][0]["pointer"], bad.pointer) << bad.line;
  }
  EXPECT_EQ(run(kTwoNodes + "--measured /nowhere/at/all.log").code, 3);
}

TEST(CollectiveCommand, NothingToDoTakesNoTime) {
  EXPECT_EQ(result("all_reduce --topology dgx-h100-ndr400 --ranks 3 --bytes 1GiB")["time_s"], 0.0);
  EXPECT_EQ(result(kTwoNodes + "--bytes 0")["bus_bandwidth"], 0.0);
}

/// The text of nccl-tests 2.13 with a rank's prefix and NCCL's own lines, at `share` of the model.
std::string log_of(const std::string& arguments, double share, double extra_us = 0.0) {
  const json rows = result(arguments + " --sweep 1MiB:4GiB")["rows"];
  std::string text =
      "0: # nThread 1 nGpus 1 minBytes 1048576 maxBytes 4294967296 step: 2(factor)\n"
      "0: #       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "0: #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)\n"
      "node1:77:77 [0] NCCL INFO Channel 00/16 : 0 1 2 3\n";
  for (const json& row : rows) {
    const std::string time = std::to_string(row["time_s"].get<double>() * 1e6 / share + extra_us);
    const std::string bytes = std::to_string(row["bytes"].get<std::int64_t>());
    text += "0: " + bytes + " 1 float sum -1 " + time + " 1.0 1.0 N/A  N/A 1.0 1.0 N/A\n";
  }
  return text + "# Avg bus bandwidth    : 1.0\n";
}

TEST(CollectiveMeasured, AHealthyLogIsCalledHealthy) {
  const std::string log = file_of("healthy.log", log_of(kTwoNodes, 0.95));
  const json answer = result(kTwoNodes + "--measured " + log);
  ASSERT_EQ(answer["measured"].size(), 13U);
  EXPECT_NEAR(answer["median_share"], 0.95, 1e-4);
  EXPECT_NE(answer["findings"][0].get<std::string>().find("healthy"), std::string::npos);
  EXPECT_TRUE(answer["measured"][0]["in_place_s"].is_null());
}

// NVIDIA/nccl issue 2409: 2 x 8 H100, all-reduce 216-231 of some 470 GB/s expected.
TEST(CollectiveMeasured, HalfTheBandwidthNamesTheNicsAndTheConnectionLimit) {
  const std::string log = file_of("slow.log",
                                  "# size count type redop root time algbw busbw #wrong\n"
                                  "4294967296 1073741824 float sum -1 35800 120 225 0\n"
                                  "8589934592 2147483648 float sum -1 71600 120 225 0\n");
  const json answer = result(kTwoNodes + "--measured " + log);
  EXPECT_EQ(answer["measured"][1]["degraded"], true);
  EXPECT_NEAR(answer["measured"][1]["measured_bus_bandwidth"], 225e9, 1e9);
  const std::string finding = answer["findings"][0];
  EXPECT_NE(finding.find("between nodes"), std::string::npos) << finding;
  EXPECT_NE(finding.find("limit per connection"), std::string::npos) << finding;
}

TEST(CollectiveMeasured, LateSmallSizesAreLatency) {
  const std::string log = file_of("late.log", log_of(kTwoNodes, 1.0, 400.0));
  const json answer = result(kTwoNodes + "--measured " + log);
  const std::string finding = answer["findings"][0];
  EXPECT_NE(finding.find("small sizes are late"), std::string::npos) << finding;
}

// NVIDIA/nccl-tests issue 169: bus bandwidth 100, 70, 58, 58, 40 GB/s on 2 to 6 nodes of 8 x A100
// with eight NICs of 100 Gb/s: 2.5 times less is congestion, which one log cannot show.
TEST(CollectiveMeasured, DecayOverNodesIsOversubscription) {
  std::string logs;
  const double bus[] = {100, 70, 58, 58, 40};
  for (int nodes = 2; nodes <= 6; ++nodes) {
    std::string text;
    for (int rank = 0; rank < 8 * nodes; ++rank) {
      text += "#  Rank " + std::to_string(rank) + " Group 0 Pid 1 on a device 0 [0x07] A100\n";
    }
    const double n = 8 * nodes;
    const double time = 2 * (n - 1) / n * 8589934592.0 / (bus[nodes - 2] * 1e9) * 1e6;
    text += "8589934592 2147483648 float sum " + std::to_string(time) + " 1 1 0\n";
    logs += " --measured " + file_of("nodes" + std::to_string(nodes) + ".log", text);
  }
  const json answer = result("all_reduce --topology dgx-a100-hdr200" + logs);
  ASSERT_EQ(answer["logs"].size(), 5U);
  EXPECT_EQ(answer["logs"][4]["ranks"], 48);
  const std::string scaling = answer["scaling"];
  EXPECT_NE(scaling.find("oversubscription of 2.5 to 1"), std::string::npos) << scaling;
}

// A size without a time is not compared, and is told; no line passes a hundred columns.
TEST(CollectiveMeasured, RowsWithoutATimeAreTold) {
  const std::string log = file_of("untimed.log",
                                  "1073741824 268435456 float sum -1 35800 1 1 0 35800 1 1 0\n"
                                  "1048576 262144 float sum -1 -5 -1 -1 0 nan inf 0 0\n"
                                  "2097152 524288 float sum -1 N/A 1 1 0 N/A 1 1 0\n");
  const json answer = result(kTwoNodes + "--measured " + log);
  EXPECT_EQ(answer["measured"].size(), 1U);
  EXPECT_EQ(answer["untimed"], json({1048576, 2097152}));
  std::istringstream page(run(kTwoNodes + "--measured " + log).out);
  std::string last;
  for (std::string line; std::getline(page, line); last = line) {
    EXPECT_LE(line.size(), 100U) << line;
  }
  EXPECT_EQ(last, "  left out  2 rows without a time above 0, of 1,048,576, 2,097,152 bytes");
}

TEST(CollectiveMeasured, JsonLogs) {
  const std::string log =
      file_of("log.json",
              R"({"results": [{"size": 1073741824, "out_of_place": {"time": null, "bus_bw": 0},
          "in_place": {"time": 6000.5}}, {"size": "x"}, {"size": -1}, 7, {"size": 4096}]})");
  const json answer = result(kTwoNodes + "--measured " + log);
  ASSERT_EQ(answer["measured"].size(), 1U);
  EXPECT_DOUBLE_EQ(answer["measured"][0]["measured_s"], 6000.5e-6);
}

// Rule: a hostile text is refused with a fault or read, never a crash.
TEST(CollectiveMeasured, HostileTexts) {
  for (const std::string& text :
       {std::string(),
        std::string("\0\1\2\377", 4),
        std::string("{\"results\": 3}"),
        std::string("[[[[[["),
        std::string("1 1 float nan nan nan nan\n99999999999999999999 1 f 1 1 1 1\n"),
        std::string("-5 1 float sum -1 3 1 1 0\n1048576 1 float sum -1 -3 1 1 0\n"),
        std::string("1048576 1 float sum -1 1e999 1 1 0\n"),
        std::string(100'000, ':'),
        std::string(100'000, '#'),
        std::string("# Rank\n#\n# size count\n: : :\n")}) {
    const std::string log = file_of("hostile.log", text);
    const json refused = result(kTwoNodes + "--measured " + log, 2);
    ASSERT_FALSE(refused.is_discarded());
    EXPECT_EQ(refused["faults"][0]["pointer"], "/measured");
  }
}

TEST(CollectiveMeasured, AnotherOperationIsRefused) {
  const std::string log = file_of(
      "gather.log", "# Collective test starting: all_gather_perf\n1048576 1 float sum 3 1 1 0\n");
  EXPECT_EQ(result(kTwoNodes + "--measured " + log, 2)["faults"][0]["pointer"], "/op");
}

}  // namespace
}  // namespace foretrain
