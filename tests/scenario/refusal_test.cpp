// Every refusal: where it points, what it says, what it offers. The numbers in each are worked out
// from the example by hand (see example.h).
#include "tests/scenario/example.h"

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
                  "micro-batch 1 | nearest: 224 or 256"});
  EXPECT_EQ(faults_of({"cluster.gpus=1024", "training.global_batch_size=20"}),
            Lines{"/training/global_batch_size | 20 sequences cannot be shared by dp 32 x "
                  "micro-batch 1 | nearest: 32"});
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
                  "attention's zig-zag halves) | nearest: 2992 or 3000"});
  EXPECT_EQ(faults_of({"training.sequence_length=8196"}),
            Lines{"/training/sequence_length | 8196 tokens do not divide by tp 8 (sequence "
                  "parallelism) | nearest: 8192 or 8200"});
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
  EXPECT_EQ(faults_of({"parallelism.layers_per_stage=[21,19,20,20]",
                       "parallelism.first_stage_layers=20"}),
            Lines{"/parallelism/layers_per_stage | [21 19 20 20] contradicts [20 20 20 20], which "
                  "the other keys ask for | give layers_per_stage alone, or leave it out"});
}

TEST(Refusal, TensorParallelismBeyondTheHeads) {
  EXPECT_EQ(faults_of({"parallelism.tp=16"}),
            Lines{"/parallelism/tp | 16 does not divide 8 key/value heads | largest tp here: 8, or "
                  "set kv_replication"});
  EXPECT_EQ(faults_of({"parallelism.tp=16", "parallelism.kv_replication=true"}), Lines{});
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
                   "/parallelism/layers_per_stage | has 1 entries, not pp = 4 | "}));
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

TEST(Refusal, Overrides) {
  EXPECT_EQ(faults_of({"parallelism"}),
            Lines{" | --set parallelism: must be PATH=VALUE | e.g. --set parallelism.pp=8"});
  EXPECT_EQ(faults_of({"model.layers=3"}),
            Lines{"/model | --set model.layers=3: it is a string and has no \"layers\" | "});
  EXPECT_EQ(faults_of({"perturbations=[]", "perturbations.0.factor=2"}),
            Lines{"/perturbations | --set perturbations.0.factor=2: it has no element \"0\", only "
                  "0 | "});
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

}  // namespace
}  // namespace foretrain
