// What `foretrain estimate` accepts, notes and refuses.
#include "tests/cli/estimate_command.h"

#include <utility>

namespace foretrain::test {
namespace {

// 8 key/value heads; the other commands and the chapter refuse tp 16. Query heads must divide
// still, and every other fault stays.
TEST(EstimateCommand, KeyValueHeadsLimitTheChapterOnly) {
  const std::string wide = "llama3-405b-8k --set parallelism.tp=16 --set parallelism.pp=8 ";
  const std::vector<std::string> refused = {
      "/parallelism/tp: 16 does not divide 8 key/value heads"};
  EXPECT_EQ(faults(wide), refused);
  EXPECT_EQ(run_program("check " + wide + ">/dev/null 2>&1").code, 2);
  const Json json = estimate(wide + "--assumptions workshop");
  bool noted = false;
  for (const Json& note : json["left_out"]) {
    noted = noted || note.get<std::string>().starts_with("key/value heads: tp 16 splits 8");
  }
  EXPECT_TRUE(noted) << json["left_out"];
  const std::vector<std::string> three = faults(
      "llama3-405b-8k --assumptions workshop --set parallelism.tp=256 --set parallelism.pp=8 --set "
      "training.global_batch_size=2047 --set seeed=1");
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[0], "/seeed: unknown key");
  EXPECT_EQ(three[1],
            "/training/global_batch_size: 2047 sequences cannot be shared by dp 8 x "
            "micro-batch 1");
  EXPECT_EQ(three[2], "/parallelism/tp: 256 does not divide 128 attention heads");
}

// What `run` refuses as not built is estimated.
TEST(EstimateCommand, WhatIsNotBuiltIsEstimatedAndNoted) {
  const std::vector<std::pair<std::string, std::string>> jobs = {
      {"--set parallelism.cp=2 --set parallelism.tp=4 --set parallelism.cp_kind=ulysses",
       "cp_kind"},
      {"--set model=mixtral-8x7b --set parallelism.tp=2 --set parallelism.ep=4 --set "
       "parallelism.etp=2",
       "traffic of etp"},
      {"--set model=deepseek-v3 --set cluster.gpus=1024 --set parallelism.tp=1 --set "
       "parallelism.pp=1 --set parallelism.ep=64 --set training.global_batch_size=1024 --assume "
       "memory=200e9",
       "multi-latent"},
      {"--set parallelism.sharding=zero3 --set parallelism.fsdp.unit=layer", "fsdp"},
      {"--set schedule=dualpipe", "schedule dualpipe"},
      {"--set recompute.modules='[\"mlp\"]'", "recompute modules"},
      {"--set training.dtype=fp8", "attention in bf16"},
      {"--set parallelism.tp=16 --set parallelism.kv_replication=true", "copies"},
  };
  for (const auto& [set, note] : jobs) {
    const Json json = estimate("llama3-70b-64 " + set);
    const std::string notes = json["left_out"].dump();
    EXPECT_NE(notes.find('"' + note), std::string::npos) << set << notes;
    EXPECT_GT(json["mfu"].get<double>(), 0);
  }
}

TEST(EstimateCommand, WhatTheWorkshopLeavesOut) {
  const std::string job =
      "llama3-70b-64 --assumptions workshop --set training.grad_dtype=bf16 --set ";
  EXPECT_EQ(estimate(job + "recompute.mode=full")["left_out"], Json::array());
  const std::vector<std::pair<std::string, std::string>> jobs = {
      {"parallelism.cp=2 --set parallelism.pp=1", "cp 2"},
      {"model=mixtral-8x7b --set parallelism.tp=1 --set parallelism.ep=4", "ep 4"},
      {"parallelism.layers_per_stage=[21,20,20,19]", "uneven stages"},
      {"schedule=gpipe", "schedule gpipe"},
      {"recompute.mode=selective", "recompute selective"},
      {"overlap.dp_grad=false", "overlap"},
      {"training.grad_dtype=fp32", "grad_dtype fp32"},
      {"costs.model=constant", "costs"},
      {"perturbations='[{\"kind\":\"slow_gpu\",\"ranks\":[1],\"factor\":2}]'", "perturbations"},
  };
  for (const auto& [set, note] : jobs) {
    const Outcome outcome = run_program("estimate " + job + set + " --json - 2>&1");
    ASSERT_LE(outcome.code, 1) << set << outcome.out;
    const Json notes = Json::parse(outcome.out)["left_out"];
    ASSERT_EQ(notes.size(), 1U) << set << notes;
    EXPECT_TRUE(notes[0].get<std::string>().starts_with(note)) << set << notes;
  }
}

// 8,192 tokens over cp 4 are 2,048 a rank.
TEST(EstimateCommand, FewTokensPerContextRankAreNoted) {
  const std::string job = "llama3-70b-64 --set parallelism.pp=1 --set parallelism.cp=";
  EXPECT_EQ(estimate(job + "2")["notes"], Json::array());
  const Json notes = estimate(job + "4")["notes"];
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "cp 4 leaves 2,048 tokens per rank, fewer than minimum_cp_tokens (4,096), which search "
            "leaves out");
  EXPECT_EQ(estimate(job + "4 --assume minimum_cp_tokens=2048")["notes"], Json::array());
}

TEST(EstimateCommand, FaultsOfScenarioAndAssumptionsComeAtOnce) {
  const std::vector<std::string> expected = {
      "/seeed: unknown key",
      "/parallelism/tp: 16 does not divide 8 key/value heads",
      "/assume/efficency: unknown assumption",
      "/assume/memory: 80 is out of range",
      "/assume/peak: \"tflops\" is no unit of a FLOP rate",
      "/assume/gradient_bytes: -1 is out of range",
      "/assume: \"vpp\" is not KEY=VALUE"};
  EXPECT_EQ(faults("llama3-70b-64 --set seeed=1 --set parallelism.tp=16 --assume efficency=1 "
                   "--assume memory=80 --assume 'peak=3 tflops' --assume gradient_bytes=-1 "
                   "--assume vpp"),
            expected);
}

TEST(EstimateCommand, AssumptionsWithoutEffectAreRefused) {
  const std::vector<std::string> of_the_chapter = {
      "/assume/pp_overlap: not used by the workshop's rules"};
  EXPECT_EQ(faults("llama3-70b-64 --assumptions workshop --assume pp_overlap=1"), of_the_chapter);
  const std::vector<std::string> of_experts = {
      "/assume/expert_imbalance: the model has no experts"};
  EXPECT_EQ(faults("llama3-70b-64 --assume expert_imbalance=1.3"), of_experts);
  const std::vector<std::string> of_stages = {
      "/assume/vpp: 21 chunks, but no stage holds more than 20 layers",
      "/assume/recompute_layers: 30 layers, but no stage holds more than 20 layers"};
  EXPECT_EQ(faults("llama3-70b-64 --assume vpp=21 --assume recompute_layers=30"), of_stages);
  const std::vector<std::string> of_parameters = {
      "/assume/expert_parameters: more of them than the parameters, experts included"};
  EXPECT_EQ(faults("llama3-70b-64 --set model=mixtral-8x7b --set parallelism.tp=2 --assume "
                   "parameters=1e9"),
            of_parameters);
}

// As with --set, the later of two counts; each must be legal.
TEST(EstimateCommand, TheLaterOfTwoAssumptionsCounts) {
  const Json once = estimate("llama3-70b-64 --assume efficiency=0.5");
  const Json twice = estimate("llama3-70b-64 --assume efficiency=0.7 --assume efficiency=0.5");
  EXPECT_EQ(once, twice);
  EXPECT_EQ(faults("llama3-70b-64 --assume efficiency=7 --assume efficiency=0.5").size(), 1U);
}

TEST(EstimateCommand, HostileAssumptionsAreBadInput) {
  for (const char* value :
       {"nan", "inf", "-inf", "-0.5", "0", "1e999", "1e-999", "2", "", "0.5x", "\xff", "0x1p-1"}) {
    EXPECT_EQ(faults("llama3-70b-64 --assume 'efficiency=" + std::string(value) + "'").size(), 1U)
        << value;
  }
  EXPECT_EQ(run_program("estimate llama3-70b-64 --assume '' 2>/dev/null").code, 2);
  EXPECT_EQ(run_program("estimate llama3-70b-64 --assume 2>/dev/null").code, 2);
}

// Legal extremes give finite numbers and a page.
TEST(EstimateCommand, LegalExtremesStayFinite) {
  for (const char* extreme : {"parameters=1e18",
                              "parameters=1",
                              "peak=1e9",
                              "peak=1e24",
                              "efficiency=1e-6",
                              "node_bandwidth=1e6",
                              "network_bandwidth=1e6",
                              "gpus_per_node=1e18",
                              "memory=1e18",
                              "memory=1e6",
                              "memory_fraction=1e-6",
                              "weight_bytes=1024",
                              "activation_bytes=1e6",
                              "activation_bytes=0"}) {
    const std::string line = "estimate llama3-70b-64 --assume " + std::string(extreme);
    const Outcome outcome = run_program(line + " --json - 2>&1");
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << extreme << outcome.out;
    const Json json = Json::parse(outcome.out);
    for (const char* key : {"mfu", "step_time_s", "memory_bytes", "tokens_per_s"}) {
      ASSERT_TRUE(json[key].is_number()) << extreme << key;  // what is not finite prints as null
      EXPECT_GE(json[key].get<double>(), 0) << extreme << key;
    }
    EXPECT_EQ(run_program(line + " 2>&1").code, outcome.code);
  }
}

// 1e18 / (tp 8 x pp 4) parameters of 1,024 bytes: more than 64 bits of bytes. A peak of 1 GFLOP/s
// makes the arithmetic of a minute 989,000 times as long: 600 days.
TEST(EstimateCommand, HugeNumbersAreNotCutOff) {
  const Json json =
      estimate("llama3-70b-64 --assume parameters=1e18 --assume weight_bytes=1024", 1);
  EXPECT_EQ(json["memory_parts_bytes"]["weights"].get<double>(), 1e18 / 32 * 1024);
  EXPECT_NE(page("llama3-70b-64 --assume peak=1e9").find(" days "), std::string::npos);
}

}  // namespace
}  // namespace foretrain::test
