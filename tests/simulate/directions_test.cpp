#include "foretrain/collective.h"
#include "foretrain/simulate.h"
#include "foretrain/topology.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: a step costs more where its traffic has further to go or less to go through, and nothing
/// more where it has not.
namespace foretrain {
namespace {

StepReport report_of(const std::string& name, const std::vector<std::string>& sets) {
  const Expected<Scenario> scenario = read_scenario(name, sets);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().list.front().message;
  SimulateOptions options;
  options.times_only = true;
  return simulate(*scenario, options)->report;
}

/// 175B on 128 H100, four pipeline stages of four replicas unless said otherwise.
StepReport gpt3(std::vector<std::string> sets) {
  sets.insert(sets.begin(),
              {"cluster.topology=dgx-h100-ndr400",
               "cluster.gpus=128",
               "training.global_batch_size=128",
               "parallelism.pp=4",
               "parallelism.dp=4"});
  return report_of("gpt3-175b-1024-a100", sets);
}

TEST(Directions, TensorParallelismOverTwoNodesCostsMoreThanInOne) {
  const StepReport inside = gpt3({"parallelism.tp=8"});
  const StepReport across = gpt3({"parallelism.tp=16", "parallelism.dp=2"});
  EXPECT_GT(across.step_time, inside.step_time);
  EXPECT_GT(across.breakdown.tp, inside.breakdown.tp);
}

TEST(Directions, AThinnedFabricSlowsWhatLeavesALeaf) {
  const auto dense = [](const char* oversubscription) {
    return gpt3({"parallelism.tp=8",
                 "cluster.fabric.nodes_per_leaf_group=2",
                 std::string("cluster.fabric.oversubscription=") + oversubscription});
  };
  EXPECT_GT(dense("4").breakdown.dp, dense("1").breakdown.dp);
  EXPECT_GT(dense("4").step_time, dense("1").step_time);
  const auto experts = [](const char* oversubscription) {
    return report_of("qwen3-235b",
                     {"cluster.fabric.nodes_per_leaf_group=2",
                      std::string("cluster.fabric.oversubscription=") + oversubscription});
  };
  const double even = seconds(experts("1").breakdown.ep);
  const double thin = seconds(experts("4").breakdown.ep);
  // Four times the time for what leaves a leaf, and never more.
  EXPECT_GT(thin, 3 * even);
  EXPECT_LE(thin, 4 * even);
}

/// Everything of a tp-in-node job stays on its rail (Wang et al. 2023, arXiv 2307.12169).
TEST(Directions, RailOnlyCostsADenseJobNothing) {
  const StepReport whole = gpt3({"parallelism.tp=8"});
  const StepReport rails = gpt3({"parallelism.tp=8", "cluster.fabric.fabric=rail-only"});
  EXPECT_EQ(whole.step_time, rails.step_time);
}

/// The same paper: an all-to-all takes 8.2 to 11.2 % longer when other rails are reached over
/// NVLink.
TEST(Directions, RailOnlyCostsAnAllToAllATenth) {
  TopologySpec spec = read_topology("dgx-h100-ndr400").value();
  std::vector<std::int64_t> ranks(64);
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto time = [&] {
    const GroupShape shape = Topology::build(spec, 64)->group_shape(ranks);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::kAllToAll, Bytes{1 << 30}, shape, link_model(spec));
    return seconds(cost.total());
  };
  const double spine = time();
  spec.fabric = FabricKind::kRailOnly;
  const double relayed = time();
  EXPECT_GE(relayed / spine, 1.082);
  EXPECT_LE(relayed / spine, 1.112);
  const double whole = seconds(report_of("qwen3-235b", {}).breakdown.ep);
  const double rails =
      seconds(report_of("qwen3-235b", {"cluster.fabric.fabric=rail-only"}).breakdown.ep);
  EXPECT_GE(rails / whole, 1.082);
  EXPECT_LE(rails / whole, 1.112);
}

/// DeepEP crosses on the sender's own rail and goes on over NVLink, so no spine is missed, link by
/// link neither.
TEST(Directions, RailOnlyCostsAForwardingDispatcherNothing) {
  for (const char* mode : {"analytic", "flow"}) {
    const auto step = [mode](const char* fabric) {
      return report_of("qwen3-235b",
                       {"stack={\"name\": \"megatron-2025\", \"dispatcher\": \"deepep\"}",
                        "training.global_batch_size=128",
                        "cluster.fabric.nodes_per_leaf_group=2",
                        std::string("cluster.fabric.fabric=") + fabric,
                        std::string("network.mode=") + mode})
          .step_time;
    };
    EXPECT_EQ(step("rail-only"), step("rail-optimized")) << mode;
  }
}

/// Scenarios shape their fabric; the resolved scenario says so and reads back.
TEST(ClusterFabric, IsWrittenAndReadBack) {
  const Scenario scenario = read_scenario("qwen3-235b",
                                          {"cluster.fabric.oversubscription=4",
                                           "cluster.fabric.fabric=rail-only",
                                           "cluster.fabric.nic_bandwidth=100 GB/s",
                                           R"(cluster.fabric.failed_links=["n0.nic0>rail0.0"])",
                                           "cluster.fabric.failed_nodes=[3]"})
                                .value();
  const TopologySpec& hardware = scenario.cluster.hardware;
  EXPECT_EQ(hardware.oversubscription, 4);
  EXPECT_EQ(hardware.fabric, FabricKind::kRailOnly);
  EXPECT_EQ(hardware.nic_bandwidth.bytes_per_second, 100'000'000'000);
  const std::string text = write_scenario(scenario);
  const Scenario again = parse_scenario(text).value();
  EXPECT_EQ(again.cluster.hardware.failed_links, hardware.failed_links);
  EXPECT_EQ(again.cluster.hardware.failed_nodes, std::vector<std::int64_t>{3});
  EXPECT_EQ(write_scenario(again), text);
}

std::vector<std::string> pointers(const std::vector<std::string>& sets) {
  const Expected<Scenario> scenario = read_scenario("qwen3-235b", sets, {}, cluster_part_faults);
  std::vector<std::string> found;
  for (const Diagnostic& fault : scenario ? cluster_faults(*scenario) : scenario.error().list) {
    found.push_back(fault.pointer);
  }
  return found;
}

TEST(ClusterFabric, FaultsPointAtTheirKeys) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(pointers({}), Lines{});
  EXPECT_EQ(pointers({"cluster.fabric.oversubscription=0.5"}),
            Lines{"/cluster/fabric/oversubscription"});
  EXPECT_EQ(pointers({"cluster.fabric.rails=8"}), Lines{"/cluster/fabric/rails"});
  EXPECT_EQ(pointers({R"(cluster.fabric.failed_links=["n0.nic0>leaf7.7"])"}),
            Lines{"/cluster/fabric/failed_links/0"});
  EXPECT_EQ(pointers({"cluster.fabric.failed_nodes=[4000]"}),
            Lines{"/cluster/fabric/failed_nodes/0"});
  EXPECT_EQ(pointers({"cluster.fabric.fabric=fat-tree", "cluster.fabric.off_rail=nvlink"}),
            Lines{"/cluster/fabric/off_rail"});
  // Pods are read nowhere but in a clos fabric.
  EXPECT_EQ(pointers({"cluster.fabric.pod_oversubscription=7"}),
            Lines{"/cluster/fabric/pod_oversubscription"});
  EXPECT_EQ(pointers({R"(perturbations=[{"kind": "slow_gpu", "ranks": [1], "factor": 2},
                {"kind": "slow_link", "link": "n0.nic0>leaf9.0", "factor": 2}])"}),
            Lines{"/perturbations/1/link"});
}

/// Names are looked up wherever the cluster can be built: whatever else is at fault.
TEST(ClusterFabric, NamesAreCheckedBesideOtherFaults) {
  using Lines = std::vector<std::string>;
  const std::string slow = R"(perturbations=[{"kind": "slow_link", "link": "zz", "factor": 2},
                {"kind": "slow_link", "link": "n0.nic0>leaf0.0", "factor": 2},
                {"kind": "slow_link", "link": "yy", "factor": 2}])";
  const std::string links = R"(cluster.fabric.failed_links=["zzz", "n0.nic1>leaf0.1", "x"])";
  const std::string nodes = "cluster.fabric.failed_nodes=[0, 7700, 7800]";
  const Lines named = {"/cluster/fabric/failed_nodes/1",
                       "/cluster/fabric/failed_nodes/2",
                       "/cluster/fabric/failed_links/0",
                       // node 0 has failed, and with it its links
                       "/cluster/fabric/failed_links/1",
                       "/cluster/fabric/failed_links/2",
                       "/perturbations/0/link",
                       "/perturbations/1/link",
                       "/perturbations/2/link"};
  EXPECT_EQ(pointers({slow, links, nodes}), named);
  Lines more = named;
  more.insert(more.begin(), "/training/global_batch_size");
  EXPECT_EQ(pointers({slow, links, nodes, "training.global_batch_size=31"}), more);
  // A key that changes nothing changes nothing; one that cannot be read leaves no cluster to ask.
  more.front() = "/cluster/fabric/gpus_per_pod";
  EXPECT_EQ(pointers({slow, links, nodes, "cluster.fabric.gpus_per_pod=64"}), more);
  EXPECT_EQ(pointers({slow, links, nodes, "cluster.fabric.oversubscription=0.5"}),
            Lines{"/cluster/fabric/oversubscription"});
  EXPECT_EQ(pointers({slow, links, "cluster.topology=nope"}), Lines{"/cluster/topology"});
  // What could not be read is at fault once.
  EXPECT_EQ(pointers({R"(cluster.fabric.failed_links=[7, "x"])",
                      "cluster.fabric.failed_nodes=[true]",
                      R"(perturbations=[{"kind": "slow_link", "factor": 2}])"}),
            (Lines{"/cluster/fabric/failed_links/0",
                   "/cluster/fabric/failed_nodes/0",
                   "/perturbations/0/link",
                   "/cluster/fabric/failed_links/1"}));
}

/// Rank 1 has neighbours in its node on both sides of any list, and nobody on its rail.
TEST(ClusterFabric, AGroupThatFailedLinksPartIsRefused) {
  const std::string failed = R"(cluster.fabric.failed_links=["n0.nic1>leaf0.1"])";
  const Expected<Scenario> scenario = read_scenario(
      "llama3-8b-8", {failed, "cluster.gpus=16", "parallelism.tp=1", "network.mode=analytic"});
  ASSERT_TRUE(scenario.has_value());
  const Expected<Simulation> simulation = simulate(*scenario);
  ASSERT_FALSE(simulation.has_value());
  const Diagnostic& fault = simulation.error().list.front();
  EXPECT_EQ(fault.pointer, "/cluster");
  EXPECT_EQ(fault.message, "gpu1 and gpu9 are in one group, but no route is left between them");
  EXPECT_EQ(fault.hint, "failed links (n0.nic1>leaf0.1) take every way between them");
}

}  // namespace
}  // namespace foretrain
