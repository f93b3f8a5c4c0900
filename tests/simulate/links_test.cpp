#include "foretrain/report.h"
#include "foretrain/simulate.h"
#include "sim/lower/link_traffic.h"
#include "sim/lower/lower.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: what ranks send is what links carry, and a slow link is felt by those who cross it alone.
namespace foretrain {
namespace {

/// GPT-style, 8 layers, two nodes: tp 8, and dp 2 or pp 2 between the nodes.
Scenario two_nodes(const std::string& degrees, const std::vector<std::string>& more = {}) {
  const std::string text = R"({"name": "two nodes", "model": "llama3-8b",
      "cluster": {"topology": "dgx-h100-ndr400", "gpus": 16},
      "training": {"sequence_length": 2048, "global_batch_size": 16},
      "parallelism": {)" + degrees +
                           "}}";
  return parse_scenario(text, ".", more).value();
}

/// Collective bytes and messages that all ranks send in a step.
double sent(const Program& program) {
  double bytes = 0;
  for (const Instance& instance : program.instances) {
    const Template& list = program.templates[static_cast<std::size_t>(instance.template_index)];
    for (const Call& call : list.calls) {
      for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
        const bool sends = task.kind == TaskKind::kCollective || task.kind == TaskKind::kSend;
        bytes += sends ? static_cast<double>(task.bytes) : 0.0;
      }
    }
  }
  return bytes;
}

TEST(LinkTraffic, LinksOutOfGpusCarryWhatTheirRanksSend) {
  for (const char* degrees : {R"("tp": 8, "dp": 2)",
                              R"("tp": 4, "pp": 2, "dp": 2)",
                              R"("tp": 2, "cp": 2, "dp": 4)",
                              R"("tp": 2, "cp": 4, "cp_kind": "ulysses", "dp": 2)"}) {
    const Scenario scenario = two_nodes(degrees);
    const Lowered lowered = lower(scenario).value();
    const Topology topology = topology_of(scenario).value();
    const std::vector<LinkTraffic> traffic = link_traffic(scenario, lowered.program, topology);
    double out = 0, in = 0;
    for (std::size_t at = 0; at < traffic.size(); ++at) {
      const Link& link = topology.links()[at];
      const auto kind = [&](std::int32_t device) {
        return topology.devices()[static_cast<std::size_t>(device)].kind;
      };
      out += kind(link.from) == DeviceKind::kGpu ? traffic[at].total() : 0.0;
      in += kind(link.to) == DeviceKind::kGpu ? traffic[at].total() : 0.0;
    }
    const double bytes = sent(lowered.program);
    EXPECT_NEAR(out, bytes, 1e-9 * bytes) << degrees;
    EXPECT_NEAR(in, bytes, 1e-9 * bytes) << degrees;
  }
}

TEST(LinkTraffic, BusiestLinksAreTenKindsAtMostMostUsedFirst) {
  const Simulation simulation = simulate(two_nodes(R"("tp": 4, "pp": 2, "dp": 2)")).value();
  const std::vector<LinkReport>& links = simulation.report.busiest_links;
  ASSERT_FALSE(links.empty());
  EXPECT_LE(links.size(), 10U);
  for (std::size_t i = 0; i < links.size(); ++i) {
    EXPECT_DOUBLE_EQ(links[i].utilisation,
                     links[i].bytes / (links[i].bandwidth * seconds(simulation.report.step_time)));
    EXPECT_GT(links[i].utilisation, 0.0);
    EXPECT_LE(links[i].utilisation, 1.0);
    EXPECT_TRUE(i == 0 || links[i].utilisation <= links[i - 1].utilisation);
  }
}

/// Per rank: time its transfers spend on NICs in a step, latency apart.
std::vector<std::int64_t> nic_time(const Program& program) {
  std::vector<std::int64_t> times;
  for (const Instance& instance : program.instances) {
    std::int64_t time = 0;
    const Template& list = program.templates[static_cast<std::size_t>(instance.template_index)];
    for (const Call& call : list.calls) {
      for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
        time += task.work[static_cast<std::size_t>(Resource::kNic)];
      }
    }
    times.push_back(time);
  }
  return times;
}

std::string slow(const std::string& link, const std::string& factor) {
  return R"(perturbations=[{"kind": "slow_link", "link": ")" + link + R"(", "factor": )" + factor +
         "}]";
}

/// The NIC of GPU 3 of node 0 carries its data-parallel ring alone: ranks 3 and 11 and nobody else.
/// The norm's all-reduce over everybody crosses it too, with a few bytes.
TEST(SlowLink, IsFeltByThoseWhoCrossIt) {
  const Program whole = lower(two_nodes(R"("tp": 8, "dp": 2)"))->program;
  const Program slowed =
      lower(two_nodes(R"("tp": 8, "dp": 2)", {slow("n0.nic3>leaf0.3", "4")}))->program;
  const std::vector<std::int64_t> before = nic_time(whole), after = nic_time(slowed);
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    const double expected = rank % 8 == 3 ? 4.0 : 1.0;
    EXPECT_NEAR(static_cast<double>(after[rank]) / static_cast<double>(before[rank]),
                expected,
                1e-3 * expected)
        << rank;
  }
}

/// A GPU's PCIe link of 64 GB/s lies before its NIC of 50: slowed to 53 it holds nobody up, to 32
/// it does; a NIC slowed to 2/3 is felt whole.
TEST(SlowLink, CountsFromWhereItIsTheNarrowest) {
  const std::vector<std::int64_t> before =
      nic_time(lower(two_nodes(R"("tp": 8, "dp": 2)"))->program);
  const auto ratio = [&](const std::string& link, const std::string& factor) {
    const Scenario scenario = two_nodes(R"("tp": 8, "dp": 2)", {slow(link, factor)});
    const std::vector<std::int64_t> after = nic_time(lower(scenario)->program);
    return static_cast<double>(after[3]) / static_cast<double>(before[3]);
  };
  EXPECT_EQ(ratio("gpu3>n0.nic3", "1.2"), 1.0);
  EXPECT_NEAR(ratio("gpu3>n0.nic3", "2"), 50.0 / 32.0, 1e-3);
  EXPECT_NEAR(ratio("n0.nic3>leaf0.3", "1.5"), 1.5, 1e-3);
}

TEST(SlowLink, OfFactorOneChangesNothing) {
  const Scenario scenario = two_nodes(R"("tp": 4, "pp": 2, "dp": 2)");
  const Scenario slowed = two_nodes(R"("tp": 4, "pp": 2, "dp": 2)", {slow("n0.nic3>leaf0.3", "1")});
  EXPECT_EQ(nic_time(lower(scenario)->program), nic_time(lower(slowed)->program));
  EXPECT_EQ(simulate(scenario)->report.step_time, simulate(slowed)->report.step_time);
}

TEST(SlowLink, InsideANodeSlowsTheGroupsOverIt) {
  const Duration whole = simulate(two_nodes(R"("tp": 8, "dp": 2)"))->report.step_time;
  const Simulation slowed =
      simulate(two_nodes(R"("tp": 8, "dp": 2)", {slow("gpu5>n0.nvs0", "3")})).value();
  EXPECT_GT(slowed.report.step_time, whole);
  ASSERT_EQ(slowed.report.stragglers.size(), 1U);
  EXPECT_EQ(slowed.report.stragglers[0].cause, "slow_link gpu5>n0.nvs0");
  EXPECT_EQ(slowed.report.stragglers[0].cost, slowed.report.step_time - whole);
}

/// Rule: what a slow link adds to idle time is the stragglers' and nobody else's; a step without it
/// has the same waits for stages, transfers between them and the schedule.
TEST(SlowLink, IsAStragglerInTheBreakdown) {
  const std::string layout = R"("tp": 4, "pp": 2, "dp": 2)";
  const auto breakdown = [&](const std::vector<std::string>& more) {
    return simulate(two_nodes(layout, more)).value().report.breakdown;
  };
  const Breakdown whole = breakdown({});
  EXPECT_EQ(whole.straggler, Duration{});
  for (const char* link : {"gpu5>n0.nvs0", "n0.nic1>leaf0.1"}) {
    const Breakdown slowed = breakdown({slow(link, "40")});
    EXPECT_GT(slowed.straggler, Duration{}) << link;
    EXPECT_EQ(slowed.pp, whole.pp) << link;
    EXPECT_EQ(slowed.imbalance, whole.imbalance) << link;
    EXPECT_NEAR(seconds(slowed.bubble), seconds(whole.bubble), 1e-9 * seconds(whole.bubble))
        << link;
  }
}

TEST(SlowLink, ThatIsNotThereIsAFaultWithAGuess) {
  const Expected<Lowered> lowered =
      lower(two_nodes(R"("tp": 8, "dp": 2)", {slow("n0.nic3>leaf0.4", "2")}));
  ASSERT_FALSE(lowered.has_value());
  ASSERT_EQ(lowered.error().list.size(), 1U);
  EXPECT_EQ(lowered.error().list[0].pointer, "/perturbations/0/link");
  EXPECT_NE(lowered.error().list[0].hint.find("did you mean"), std::string::npos);
}

/// A track's area over the first step is what the link carries in it.
TEST(LinkTracks, HoldTheBytesTheLinkCarries) {
  for (const char* id : {"n0.nic1>leaf0.1", "gpu2>n0.nvs0"}) {
    SimulateOptions options;
    options.record = true;
    options.trace_links = {id};
    const Scenario scenario = two_nodes(R"("tp": 4, "pp": 2, "dp": 2)");
    const Simulation simulation = simulate(scenario, options).value();
    ASSERT_EQ(simulation.links.size(), 1U);
    const LinkTrack& track = simulation.links[0];
    EXPECT_EQ(track.id, id);
    double area = 0;
    for (std::size_t i = 0; i + 1 < track.rates.size(); ++i) {
      area += track.rates[i].second * seconds(track.rates[i + 1].first - track.rates[i].first);
    }
    const Lowered lowered = lower(scenario).value();
    const Topology topology = topology_of(scenario).value();
    const std::vector<LinkTraffic> traffic = link_traffic(scenario, lowered.program, topology);
    for (std::size_t at = 0; at < traffic.size(); ++at) {
      if (topology.links()[at].id == id) {
        EXPECT_NEAR(area, traffic[at].total(), 1e-6 * traffic[at].total()) << id;
        EXPECT_GT(area, 0.0);
      }
    }
    EXPECT_EQ(track.rates.back().second, 0.0);
    TraceOptions shown;
    shown.links = simulation.links;
    const auto trace =
        nlohmann::json::parse(chrome_trace(simulation.program, simulation.timeline, shown));
    int counters = 0;
    for (const auto& event : trace["traceEvents"]) {
      counters +=
          event.value("ph", "") == "C" && event.value("name", "") == track.id + " (bytes/s)";
    }
    EXPECT_GT(counters, 2);
  }
}

TEST(LinkTracks, OfUnknownLinksAreFaults) {
  SimulateOptions options;
  options.record = true;
  options.trace_links = {"gpu2>n0.nvs1", "nonsense"};
  const Expected<Simulation> simulation = simulate(two_nodes(R"("tp": 8, "dp": 2)"), options);
  ASSERT_FALSE(simulation.has_value());
  EXPECT_EQ(simulation.error().list.size(), 2U);
  EXPECT_EQ(simulation.error().list[0].pointer, "/trace-links");
}

}  // namespace
}  // namespace foretrain
