// Every refusal: where it points, what it says, what it offers. The numbers in each are worked out
// from the example by hand (see example.h).
#include "tests/scenario/example.h"

#include <array>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using Lines = std::vector<std::string>;

TEST(Refusal, TheExampleItselfIsGood) {
  EXPECT_EQ(faults_of({}), Lines{});
}

TEST(Refusal, GpusThatTheDegreesDoNotDivide) {
  EXPECT_EQ(faults_of({"cluster.gpus=72"}),
            Lines{"/parallelism | tp 8 x pp 4 = 32 does not divide the 72 GPUs | "
                  "nearest: 64 or 96 GPUs"});
}

TEST(Refusal, FewerGpusThanOneReplica) {
  EXPECT_EQ(faults_of({"cluster.gpus=8", "parallelism.pp=2"}),
            Lines{"/parallelism | tp 8 x pp 2 = 16 is more than the 8 GPUs | "
                  "at least 16 GPUs, or lower degrees"});
}

TEST(Refusal, DpThatContradicts) {
  EXPECT_EQ(faults_of({"parallelism.dp=4"}),
            Lines{"/parallelism/dp | dp 4 contradicts 64 GPUs over tp 8 x pp 4 = 32, which leave "
                  "dp 2 | leave dp out, or set it to 2"});
}

// dp 32 x micro-batch 1: 250 = 7 x 32 + 26.
TEST(Refusal, BatchThatCannotBeShared) {
  EXPECT_EQ(faults_of({"cluster.gpus=1024", "training.global_batch_size=250"}),
            Lines{"/training/global_batch_size | 250 sequences cannot be shared by dp 32 x "
                  "micro-batch 1 | nearest: 224 or 256 sequences"});
  EXPECT_EQ(faults_of({"cluster.gpus=1024", "training.global_batch_size=20"}),
            Lines{"/training/global_batch_size | 20 sequences cannot be shared by dp 32 x "
                  "micro-batch 1 | nearest: 32 sequences"});
}

TEST(Refusal, StatedMicroBatchesThatContradict) {
  EXPECT_EQ(faults_of({"parallelism.micro_batches=255"}),
            Lines{"/parallelism/micro_batches | 255 contradicts 512 sequences over dp 2 x "
                  "micro-batch 1 = 256 | leave micro_batches out, or set it to 256"});
}

TEST(Refusal, SequenceOverContextParallelRanks) {
  EXPECT_EQ(faults_of({"training.sequence_length=2999",
                       "parallelism.cp=4",
                       "parallelism.tp=1",
                       "cluster.gpus=16"}),
            Lines{"/training/sequence_length | 2999 tokens do not divide by 2 x cp = 8 (ring "
                  "attention's zig-zag halves) | nearest: 2992 or 3000 tokens"});
  EXPECT_EQ(faults_of({"training.sequence_length=8196"}),
            Lines{"/training/sequence_length | 8196 tokens do not divide by tp 8 (sequence "
                  "parallelism) | nearest: 8192 or 8200 tokens"});
}

// 30 layers over 4 stages once built 28 in silence.
TEST(Refusal, LayersThatDoNotDivideNameTheRemainderAndTheWaysOut) {
  EXPECT_EQ(faults_of({"parallelism.pp=16", "cluster.gpus=1024", "model=llama3-405b"}),
            Lines{"/parallelism | 126 layers do not divide over pp 16 stages: 7 each leave 14 over "
                  "| embedding_and_loss_as_layers (126 + 2 = 16 x 8), or first_stage_layers 7 with "
                  "last_stage_layers 7 (8 on the others), or layers_per_stage with a list that "
                  "sums to 126"});
}

TEST(Refusal, ListsOfLayers) {
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[20,20,20,19]"}),
            Lines{"/parallelism/layers_per_stage | [20 20 20 19] sums to 79, the model has 80 "
                  "layers | "});
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[40,40]"}),
            Lines{"/parallelism/layers_per_stage | has 2 entries, not pp = 4 | "});
  EXPECT_EQ(
      faults_of(
          {"parallelism.layers_per_stage=[21,19,20,20]", "parallelism.first_stage_layers=20"}),
      Lines{"/parallelism/layers_per_stage | [21 19 20 20] puts 21 layers on the first stage, "
            "first_stage_layers says 20 | give layers_per_stage alone, or leave it out"});
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[19,20,20,21]",
                       "parallelism.embedding_and_loss_as_layers=true"}),
            Lines{"/parallelism | 80 layers + 2 (embedding and loss) do not divide over pp 4 "
                  "stages: 2 left over | leave embedding_and_loss_as_layers out: 80 = 4 x 20"});
}

// Whole lists that keep to the ends stated beside them, though those ends alone leave a remainder:
// 80 - 19 = 61 over 3 stages.
TEST(Refusal, ListsOfLayersMayRepeatTheirEnds) {
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[19,20,20,21]",
                       "parallelism.first_stage_layers=19"}),
            Lines{});
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[19,20,20,21]",
                       "parallelism.first_stage_layers=19",
                       "parallelism.last_stage_layers=21"}),
            Lines{});
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[19,20,20,21]",
                       "parallelism.first_stage_layers=20",
                       "parallelism.last_stage_layers=20"})
                .size(),
            2U);
  // Two chunks a rank, stage = chunk x pp + rank: rank 0 holds 9 + 11, the last 10 + 9.
  const Lines chunks = {"schedule=interleaved",
                        "parallelism.vpp=2",
                        "parallelism.layers_per_stage=[9,10,11,10,11,10,10,9]"};
  for (const auto& [first, faults] : {std::pair{"20", 0U}, std::pair{"9", 1U}}) {
    Lines overrides = chunks;
    overrides.push_back(std::string("parallelism.first_stage_layers=") + first);
    overrides.emplace_back("parallelism.last_stage_layers=19");
    EXPECT_EQ(faults_of(overrides).size(), faults) << first;
  }
}

// A table of 2048 positions has no row for a 2049th token.
TEST(Refusal, SequencesBeyondLearnedPositions) {
  const Lines gpt = {"model=gpt3-175b", "training.sequence_length=2048"};
  EXPECT_EQ(faults_of(gpt), Lines{});
  EXPECT_EQ(faults_of({gpt[0], "training.sequence_length=2056"}),
            Lines{"/training/sequence_length | 2056 tokens are more than the model's 2048 learned "
                  "positions | at most 2048, or raise the model's n_positions"});
}

// H100 has no FP4 tensor cores, and with them came scales of blocks; A100 has no FP8 either, V100
// not even BF16.
TEST(Refusal, PrecisionsThatTheGpuLacks) {
  EXPECT_EQ(faults_of({"training.dtype=fp8"}), Lines{});
  EXPECT_EQ(faults_of({"training.dtype=nvfp4"}),
            Lines{"/training/dtype | H100 SXM has no nvfp4 | bf16, fp16 or fp8"});
  EXPECT_EQ(faults_of({R"(training.dtype={"compute":"fp8","recipe":"mxfp8"})"}),
            Lines{"/training/dtype/recipe | H100 SXM does not scale blocks of 32 in its tensor "
                  "cores | delayed, tensorwise or blockwise"});
  EXPECT_EQ(faults_of({"training.dtype=fp8", "cluster.topology=dgx-a100-hdr200"}),
            Lines{"/training/dtype | A100 80GB SXM has no fp8 | bf16 or fp16"});
  const std::string v100 = "cluster.topology=dgx1-v100";
  EXPECT_EQ(faults_of({v100}), Lines{"/training/dtype | V100 32GB SXM has no bf16 | fp16"});
  EXPECT_EQ(faults_of({v100, "training.dtype=fp16"}), Lines{});
  const std::string b200 = "cluster.topology=dgx-b200-ndr400";
  EXPECT_EQ(faults_of({"training.dtype=nvfp4", b200}), Lines{});
  EXPECT_EQ(faults_of({R"(training.dtype={"compute":"fp8","recipe":"mxfp8"})", b200}), Lines{});
}

TEST(Refusal, RecipesOfAnotherPrecision) {
  EXPECT_EQ(faults_of({R"(training.dtype={"compute":"bf16","recipe":"delayed"})"}),
            Lines{"/training/dtype/recipe | only fp8 and nvfp4 have a recipe | leave it out"});
  EXPECT_EQ(faults_of({R"(training.dtype={"compute":"fp8","recipe":"nvfp4"})"}),
            Lines{"/training/dtype/recipe | recipe nvfp4 is not one of fp8 | delayed, tensorwise, "
                  "blockwise or mxfp8"});
  EXPECT_EQ(faults_of({R"(training.dtype={"params":"fp8"})"}),
            Lines{"/training/dtype/params | narrow weights are for GEMMs that compute in fp8 | "
                  "bf16, fp16 or fp32, or compute in fp8"});
}

TEST(Refusal, TensorParallelismBeyondTheHeads) {
  EXPECT_EQ(faults_of({"parallelism.tp=16"}),
            Lines{"/parallelism/tp | 16 does not divide 8 key/value heads | largest tp here: 8, or "
                  "set kv_replication"});
  EXPECT_EQ(faults_of({"parallelism.tp=16", "parallelism.kv_replication=true"}), Lines{});
}

// 64 attention heads, 8 key/value heads: a caller may waive the second rule, never the first.
TEST(Refusal, KeyValueHeadsWaivedByTheCaller) {
  const ScenarioWaivers waived{.kv_heads_limit_tp = true};
  EXPECT_TRUE(parse_scenario(kExample, ".", {"parallelism.tp=16"}, waived));
  const Expected<Scenario> split =
      parse_scenario(kExample, ".", {"parallelism.tp=128", "cluster.gpus=512"}, waived);
  ASSERT_FALSE(split);
  ASSERT_EQ(split.error().list.size(), 1U);
  EXPECT_EQ(
      split.error().list[0],
      (Diagnostic{
          "/parallelism/tp", "128 does not divide 64 attention heads", "largest tp here: 64"}));
}

/// The number after "largest tp here: ", or of another degree.
std::string offered(const Lines& faults, const std::string& degree) {
  const std::string mark = "largest " + degree + " here: ";
  for (const std::string& fault : faults) {
    if (const std::size_t at = fault.find(mark); at != std::string::npos) {
      return fault.substr(at + mark.size());
    }
  }
  return "none";
}

std::string offered_tp(const Lines& faults) {
  return offered(faults, "tp");
}

// 28 heads over 4 key/value heads: 7 divides the first only, 4 divides both. 8064 = 128 x 63 tokens
// divide by each of them.
TEST(Refusal, TheTensorParallelismOfferedBreaksNoOtherRule) {
  const auto qwen = [](Lines more) {
    const Lines start = {"model=qwen2.5-7b",
                         "cluster.gpus=56",
                         "parallelism.pp=1",
                         "training.global_batch_size=56",
                         "training.sequence_length=8064"};
    more.insert(more.begin(), start.begin(), start.end());
    return faults_of(more);
  };
  EXPECT_EQ(qwen({"parallelism.tp=8"}),
            Lines{"/parallelism/tp | 8 does not divide 28 attention heads | largest tp here: 4"});
  EXPECT_EQ(qwen({"parallelism.tp=4"}), Lines{});
  EXPECT_EQ(qwen({"parallelism.tp=3", "cluster.gpus=48", "training.global_batch_size=48"}),
            Lines{"/parallelism/tp | 3 does not divide 28 attention heads | largest tp here: 4"})
      << "above the one asked for, too";
  EXPECT_EQ(qwen({"parallelism.tp=7"}),
            Lines{"/parallelism/tp | 7 does not divide 4 key/value heads | largest tp here: 4"})
      << "replicas of 4 heads do not make 7";
  // 8198 = 2 x 4099 tokens shared by the tp ranks, or kept whole.
  const std::string odd = "training.sequence_length=8198";
  EXPECT_EQ(offered_tp(qwen({"parallelism.tp=14", odd})), "2");
  EXPECT_EQ(offered_tp(qwen({"parallelism.tp=14", odd, "parallelism.sequence_parallel=false"})),
            "4");
  EXPECT_EQ(offered_tp(qwen({"cluster.gpus=14", "parallelism.tp=14"})), "2") << "14 = 2 x 7 GPUs";
}

// Mixtral's 8 experts of width 14336 = 2048 x 7, folded into dp 12: etp x ep divides 12.
TEST(Refusal, TheExpertParallelismOfferedFolds) {
  const Lines mixtral = {"model=mixtral-8x7b",
                         "cluster.gpus=12",
                         "parallelism.tp=1",
                         "parallelism.pp=1",
                         "training.global_batch_size=48"};
  for (const auto& [degree, asked, right] :
       {std::array{"ep", "12", "4"}, std::array{"etp", "12", "4"}, std::array{"ep", "3", "4"}}) {
    Lines more = mixtral;
    more.push_back(std::string("parallelism.") + degree + "=" + asked);
    EXPECT_EQ(offered(faults_of(more), degree), right) << degree << " " << asked;
    more.back() = std::string("parallelism.") + degree + "=" + right;
    EXPECT_EQ(faults_of(more), Lines{});
  }
}

// 64 heads over tp 8 leave 8 to each rank: cp 3 shares none of them, cp 2 does where
// 16 divides the tokens.
TEST(Refusal, TheContextParallelismOfferedBreaksNoOtherRule) {
  const Lines ulysses = {"parallelism.cp_kind=ulysses", "parallelism.cp=3", "cluster.gpus=96"};
  Lines even = ulysses;
  even.emplace_back("training.sequence_length=8184");
  EXPECT_EQ(offered(faults_of(even), "cp"), "1") << "8184 = 8 x 1023";
  even.back() = "training.sequence_length=8208";
  EXPECT_EQ(offered(faults_of(even), "cp"), "2") << "8208 = 8 x 1026";
}

TEST(Refusal, SchedulesThatCannotRunThis) {
  EXPECT_EQ(faults_of({"parallelism.vpp=2"}),
            Lines{"/schedule | 1f1b runs one chunk a rank, vpp is 2 | set vpp to 1, or take "
                  "interleaved, which runs vpp chunks a rank"});
  EXPECT_EQ(faults_of({"schedule=zb-v", "parallelism.vpp=4"}),
            Lines{"/schedule | zb-v folds 2 chunks onto each rank, vpp is 4 | leave vpp out, or "
                  "set it to 2"});
  EXPECT_EQ(faults_of({"schedule=dualpipe", "training.global_batch_size=12"}),
            Lines{"/schedule | dualpipe needs 8 micro-batches or more, has 6 | raise "
                  "global_batch_size, or lower pp"});
  // 6 micro-batches over 4 stages with groups of 4: the last group would be short of pp.
  const Lines odd =
      faults_of({"schedule=interleaved", "parallelism.vpp=2", "training.global_batch_size=12"});
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].substr(0, 12), "/schedule | ");
}

TEST(Refusal, UnknownNamesAtTheirOwnPointers) {
  EXPECT_EQ(faults_of({"model=llama3-70c"}),
            Lines{"/model | unknown model \"llama3-70c\" | did you mean \"llama3-70b\"?"});
  EXPECT_EQ(faults_of({"cluster.topology=dgx-h100-ndr40"}),
            Lines{"/cluster/topology | unknown topology \"dgx-h100-ndr40\" | did you mean "
                  "\"dgx-h100-ndr400\"?"});
  EXPECT_EQ(faults_of({"schedule=1f1bb"}),
            Lines{"/schedule | unknown value \"1f1bb\" | did you mean \"1f1b\"?"});
  EXPECT_EQ(faults_of({"stack=megatron-2042"}),
            Lines{"/stack | unknown value \"megatron-2042\" | did you mean \"megatron-2022\"?"});
}

TEST(Refusal, SeveralFaultsAtOnceAndNoCascades) {
  EXPECT_EQ(faults_of({}, R"({
    "model": "llama3-70b",
    "cluster": {"topology": "dgx-h100-ndr400", "gpus": 64},
    "training": {"sequence_length": 8192, "global_batch_size": 511},
    "paralelism": {"tp": 3},
    "seed": -1
  })"),
            (Lines{"/seed | must be an integer from 0 to 2^53, not -1 | ",
                   "/paralelism | unknown key | did you mean \"parallelism\"?"}));
  EXPECT_EQ(faults_of({"parallelism.tp=0", "parallelism.layers_per_stage=[80]"}),
            (Lines{"/parallelism/tp | must be a positive integer, at most 2^53, not 0 | ",
                   "/parallelism/layers_per_stage | has 1 entry, not pp = 4 | "}));
}

TEST(Refusal, WhatIsMissing) {
  EXPECT_EQ(faults_of({}, "{}").size(), 3U);
  EXPECT_EQ(faults_of({}, "[]"), Lines{" | must be an object, not an array | "});
}

TEST(Refusal, Perturbations) {
  EXPECT_EQ(faults_of({R"(perturbations=[{"kind": "slow_gpu", "ranks": [64], "factor": 1.1},
                           {"kind": "slow_node", "nodes": [7, 8], "factor": 1.1},
                           {"kind": "slow_gpus"}])"}),
            (Lines{"/perturbations/2/kind | unknown value \"slow_gpus\" | did you mean "
                   "\"slow_gpu\"?",
                   "/perturbations/0/ranks/0 | 64 is none of the 64 GPUs | 0 to 63",
                   "/perturbations/1/nodes/1 | 8 is none of the 8 nodes | 0 to 7"}));
}

TEST(Refusal, PerturbationsNameEachPlaceOnce) {
  EXPECT_EQ(faults_of({R"(perturbations=[{"kind": "slow_gpu", "ranks": [3, 5, 3], "factor": 1.1},
                           {"kind": "slow_node", "nodes": [1, 1], "factor": 1.1}])"}),
            (Lines{"/perturbations/0/ranks/2 | 3 stands twice | name each of the ranks once",
                   "/perturbations/1/nodes/1 | 1 stands twice | name each of the nodes once"}));
}

TEST(Refusal, RecomputationNamesEachModuleOnce) {
  EXPECT_EQ(faults_of({R"(recompute={"modules": ["mlp", "core_attn", "mlp"]})"}),
            Lines{"/recompute/modules/2 | mlp stands twice | name each module once"});
}

// The limit that is told is the limit that holds.
TEST(Refusal, EfficienciesTooSmallToFinish) {
  const std::string costs = R"(costs={"model": "constant", "gemm_efficiency": )";
  EXPECT_EQ(faults_of({costs + "0.0000005}"}),
            Lines{"/costs/gemm_efficiency | must be a number from 1e-06 to 1.0, not 5e-07 | "});
  EXPECT_EQ(faults_of({costs + "0}"}),
            Lines{"/costs/gemm_efficiency | must be a number from 1e-06 to 1.0, not 0 | "});
  EXPECT_EQ(faults_of({costs + "0.000001}"}), Lines{});
}

TEST(Refusal, Overrides) {
  EXPECT_EQ(faults_of({"parallelism"}),
            Lines{" | --set parallelism: must be PATH=VALUE | e.g. --set parallelism.pp=8"});
  EXPECT_EQ(faults_of({"model.layers=3"}),
            Lines{"/model | --set model.layers=3: it is a string and has no \"layers\" | "});
  EXPECT_EQ(faults_of({"perturbations=[]", "perturbations.0.factor=2"}),
            Lines{"/perturbations | --set perturbations.0.factor=2: it has no element \"0\", only "
                  "0 | "});
}

// What opens like JSON is meant as JSON; everything else may be a plain word.
TEST(Refusal, OverridesThatAreBrokenJson) {
  EXPECT_EQ(
      faults_of({R"(cluster={"gpus":4,"gpus":8})"}),
      Lines{R"(/cluster/gpus | --set cluster={"gpus":4,"gpus":8}: the key is given twice | )"});
  const Lines open = faults_of({"perturbations=[{]"});
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].find("/perturbations | --set perturbations=[{]: not JSON: line 1, column 3"),
            0U)
      << open[0];
  EXPECT_EQ(faults_of({"name=a{b}"}), Lines{});
}

TEST(Override, ADegreeFreesWhatIsDerivedFromIt) {
  const Expected<Scenario> scenario = read_scenario("llama3-405b-8k", {"parallelism.pp=8"});
  ASSERT_TRUE(scenario.has_value());
  EXPECT_EQ(scenario->parallelism.dp, 256);
  EXPECT_EQ(scenario->micro_batches(), 8);
}

TEST(Override, AShortFormGrowsIntoAnObject) {
  const Expected<Scenario> scenario =
      read_scenario("llama3-405b-8k", {"schedule.group=16", "stack.cuda_graphs=true"});
  ASSERT_TRUE(scenario.has_value());
  EXPECT_EQ(scenario->schedule.name, "interleaved");
  EXPECT_EQ(scenario->schedule.group, 16);
  EXPECT_TRUE(scenario->stack.cuda_graphs);
  EXPECT_EQ(scenario->stack.family, "megatron");
}

TEST(Refusal, ContentionThatIsNone) {
  EXPECT_EQ(faults_of({"overlap.contention=0.9"}),
            Lines{"/overlap/contention | must be a number from 1.0 to 64.0, not 0.9 | "});
  EXPECT_EQ(faults_of({"overlap.contention=true"}),
            Lines{"/overlap/contention | must be \"modelled\", \"none\" or a factor | e.g. 1.2: "
                  "kernels beside transfers take 1.2 times as long"});
  EXPECT_EQ(faults_of({"overlap.contention=modelled", "costs=constant"}),
            Lines{"/overlap/contention | constant costs know nothing of what transfers take from "
                  "kernels beside them | \"none\", a factor such as 1.2, or calibrated costs"});
}

}  // namespace
}  // namespace foretrain
