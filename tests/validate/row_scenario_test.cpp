#include "sim/validate/row_scenario.h"

#include "tests/validate/published_table.h"

#include "foretrain/scenario.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

/// Rule: a row becomes the scenario its words mean; what it leaves out is supplied by a rule, and
/// every rule that was needed is named.
namespace foretrain {
namespace {

using Words = std::vector<std::string>;

RowScenario mapped(const PublishedRow& row) {
  return scenario_of_row(row, source_of(row), hardware_of(row));
}

Scenario read(const PublishedRow& row) {
  const Expected<Scenario> scenario = parse_scenario("{}", ".", mapped(row).settings);
  EXPECT_TRUE(scenario.has_value()) << row.id << ": " << scenario.error().list.front().message;
  return scenario.value_or(Scenario{});
}

TEST(RowScenario, PublishedFieldsAreTheScenarios) {
  const PublishedRow& row = test::shipped_row("sc21-t1-06");
  const Scenario scenario = read(row);
  EXPECT_EQ(mapped(row).assumed, Words{"ranks wait for pipeline transfers"});
  EXPECT_EQ(scenario.name, "sc21-t1-06");
  EXPECT_EQ(scenario.model.model_type, "gpt2");
  EXPECT_EQ(scenario.model.hidden, 10240);
  EXPECT_EQ(scenario.model.ffn, 40960);
  EXPECT_EQ(scenario.cluster.topology, "dgx-a100-hdr200");
  EXPECT_EQ(scenario.training.dtype.compute, DataType::kFp16);
  EXPECT_EQ(scenario.training.micro_batch_size, 2);
  EXPECT_EQ(scenario.parallelism.tp, 8);
  EXPECT_EQ(scenario.parallelism.vpp, 3);
  EXPECT_EQ(scenario.parallelism.dp, 32);
  EXPECT_EQ(scenario.parallelism.sharding, Sharding::kNone);
  EXPECT_FALSE(scenario.parallelism.sequence_parallel);
  EXPECT_EQ(scenario.schedule.name, "interleaved");
  EXPECT_EQ(scenario.recompute.mode, RecomputeMode::kFull);
  EXPECT_FALSE(scenario.overlap.dp_grad);
  EXPECT_EQ(scenario.stack.name, "megatron-2021");
}

TEST(RowScenario, NotesAndKernelsCount) {
  const Scenario flash = read(test::shipped_row("alephalpha-0011"));
  EXPECT_TRUE(flash.model.gated_mlp);
  const PublishedRow& sharded = test::shipped_row("internevo-0010");
  EXPECT_EQ(read(sharded).parallelism.shard_group, 8);
  const Scenario mosaic = read(test::shipped_row("mosaic-0140"));
  EXPECT_EQ(mosaic.cluster.topology, "a100-40gb-8x200-roce");
  EXPECT_FALSE(mosaic.stack.fused_operators);
  const Scenario simumax = read(test::shipped_row("simumax-0037"));
  EXPECT_EQ(simumax.parallelism.cp_kind, ContextKind::kUlysses);
  EXPECT_FALSE(simumax.overlap.pp);
}

TEST(RowScenario, ModelsThatColumnsDoNotHold) {
  const Scenario deepseek = read(test::shipped_row("bridge-26.08-002"));
  EXPECT_EQ(deepseek.model.model_type, "deepseek_v3");
  EXPECT_EQ(deepseek.model.expert_ffn, 2048);
  EXPECT_EQ(deepseek.model.ffn, 18432);
  EXPECT_EQ(deepseek.model.shared_ffn, 2048);
  EXPECT_EQ(deepseek.model.dense_first, 3);
  EXPECT_EQ(deepseek.training.multi_token_prediction, 1);
  EXPECT_EQ(deepseek.parallelism.ep, 64);
  const Scenario nemotron = read(test::shipped_row("dgxc-v24.11.1-Nemotron4-340B-bf16-H100-256"));
  EXPECT_FALSE(nemotron.model.gated_mlp);
  EXPECT_EQ(nemotron.model.kv_heads, 8);
  EXPECT_FALSE(nemotron.model.tied_embeddings);
}

// zb-0025: the paper gives the first and the last stage one layer fewer, 22 layers on 8 stages.
TEST(RowScenario, StagesThatDoNotDivide) {
  const PublishedRow& zero_bubble = test::shipped_row("zb-0025");
  const std::vector<std::int64_t> stages = read(zero_bubble).parallelism.layers_per_stage;
  EXPECT_EQ(stages, (std::vector<std::int64_t>{2, 3, 3, 3, 3, 3, 3, 2}));
  const Words assumed = mapped(zero_bubble).assumed;
  EXPECT_NE(std::find(assumed.begin(), assumed.end(), "embedding and loss counted as layers"),
            assumed.end());
  // 60 layers on 8 stages: 62 do not divide either; the four that are left over go to the middle.
  PublishedRow uneven = test::shipped_row("alephalpha-0011");
  uneven.layers = 60;
  uneven.pp = 8;
  uneven.tp = 1;
  uneven.dp = 4;
  const Scenario scenario = read(uneven);
  EXPECT_EQ(scenario.parallelism.layers_per_stage,
            (std::vector<std::int64_t>{7, 8, 8, 8, 8, 7, 7, 7}));
  EXPECT_EQ(mapped(uneven).assumed, (Words{"uneven stages", "ranks wait for pipeline transfers"}));
}

// Megatron-Bridge's own layout of 61 layers on 16 chunks: the last holds one layer and the
// prediction module; without one, the same but for it.
TEST(RowScenario, PublishedLayoutsCount) {
  PublishedRow row = test::shipped_row("bridge-26.08-002");
  const std::vector<std::int64_t> layers = read(row).parallelism.layers_per_stage;
  EXPECT_EQ(layers, (std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}));
  EXPECT_EQ(read(row).parallelism.predictions_per_stage.back(), 1);
  row.notes.clear();
  EXPECT_EQ(read(row).parallelism.layers_per_stage, layers);
  EXPECT_EQ(read(row).training.multi_token_prediction, 0);
}

// DeepSpeed's pipelines and Megatron-LM's before May 2023 block, later ones where not interleaved.
TEST(RowScenario, TransfersAreTheFrameworks) {
  const Words waits = {"ranks wait for pipeline transfers"};
  const Words overlap = {"pipeline transfers overlap"};
  const auto transfers = [](const char* id) {
    const PublishedRow& row = test::shipped_row(id);
    Words said;
    for (const std::string& word : mapped(row).assumed) {
      if (word.find("transfers") != std::string::npos) {
        said.push_back(word);
      }
    }
    return std::pair{read(row).overlap.pp, said};
  };
  EXPECT_EQ(transfers("bloom-0009"), std::pair(false, waits));
  EXPECT_EQ(transfers("sc21-t1-06"), std::pair(false, waits));  // interleaved
  EXPECT_EQ(transfers("zb-0025"), std::pair(false, waits));     // 1F1B of late 2023
  EXPECT_EQ(transfers("zb-0037"), std::pair(true, overlap));    // interleaved
  EXPECT_EQ(transfers("zb-0001"), std::pair(true, overlap));    // zero bubble
  EXPECT_EQ(transfers("simumax-0037"), std::pair(false, Words{}));
  EXPECT_EQ(transfers("megascale-0001"), std::pair(false, Words{}));
  EXPECT_EQ(transfers("megascale-0005"), std::pair(true, Words{}));
}

// Qi et al. 2024, tables 4 and 7: the same layout without and with a global synchronisation.
TEST(RowScenario, BarriersAreTheRows) {
  EXPECT_EQ(read(test::shipped_row("zb-0001")).schedule.name, "zb-h2");
  EXPECT_FALSE(read(test::shipped_row("zb-0001")).schedule.barrier);
  EXPECT_FALSE(read(test::shipped_row("zb-0001")).model.tied_embeddings);
  EXPECT_EQ(read(test::shipped_row("zb-0013")).schedule.name, "zb-h1");
  EXPECT_FALSE(read(test::shipped_row("zb-0013")).schedule.barrier);
  EXPECT_EQ(read(test::shipped_row("zb-0049")).schedule.name, "zb-h2");
  EXPECT_TRUE(read(test::shipped_row("zb-0049")).schedule.barrier);
  EXPECT_TRUE(read(test::shipped_row("zb-0025")).schedule.barrier);
}

TEST(RowScenario, WhatIsLeftOutIsNamed) {
  PublishedRow row = test::shipped_row("sc21-t1-06");
  row.vocab.reset();
  row.heads.reset();
  row.ffn.reset();
  row.mbs.reset();
  row.dtype.clear();
  row.sharding.clear();
  row.sp.reset();
  row.vpp.reset();
  row.schedule = "interleaved-1F1B";
  row.internode_bw_note.clear();
  EXPECT_EQ(mapped(row).assumed,
            (Words{"80 heads",
                   "vocabulary 51200",
                   "MLP of 4 h",
                   "network dgx-a100-hdr200",
                   "no sequence parallelism",
                   "micro-batches of 1",
                   "bf16",
                   "sharding zero1",
                   "vpp 15",
                   "ranks wait for pipeline transfers"}));
  EXPECT_EQ(read(row).parallelism.vpp, 15);
}

// Unstated recomputation is searched for, from the cheapest up.
TEST(RowScenario, RecomputationIsTriedInOrder) {
  PublishedRow row = test::shipped_row("sc21-t1-06");  // 5 layers a chunk
  EXPECT_TRUE(mapped(row).tries.empty());
  row.recompute.clear();
  Words words;
  for (const RecomputeTry& attempt : mapped(row).tries) {
    words.push_back(attempt.assumed);
  }
  EXPECT_EQ(words,
            (Words{"no recomputation",
                   "core attention recomputed",
                   "1 layer of a chunk recomputed",
                   "2 layers of a chunk recomputed",
                   "4 layers of a chunk recomputed",
                   "full recomputation"}));
}

// Sweeps compare layouts, not software: runs of one are told apart by what they ran on.
TEST(RowScenario, SoftwareTellsRunsApart) {
  const auto software = [](const char* id) { return mapped(test::shipped_row(id)).software; };
  EXPECT_NE(software("megascale-0001"), software("megascale-0005"));
  EXPECT_NE(software("megascale-0001"), software("megascale-0025"));
  EXPECT_NE(software("titan-0001"), software("titan-0002"));
  EXPECT_EQ(software("internevo-0001"), software("internevo-0010"));  // shard groups differ
  EXPECT_EQ(software("zb-0001"), software("zb-0025"));                // schedules differ
}

// What "selective" means depends on who says it.
TEST(RowScenario, SelectiveIsTheSourcesOwn) {
  const Scenario megatron = read(test::shipped_row("nemo-a100-5b-2n"));
  EXPECT_EQ(megatron.recompute.mode, RecomputeMode::kSelective);
  const Scenario torchtitan = read(test::shipped_row("titan-0001"));
  EXPECT_EQ(torchtitan.recompute.modules, (Words{"layernorm", "mlp"}));
  const RowScenario fms = mapped(test::shipped_row("fms-0003"));  // 40 layers
  ASSERT_EQ(fms.tries.size(), 7U);
  EXPECT_EQ(fms.tries.front().assumed, "1 layer of a chunk recomputed");
  EXPECT_EQ(fms.tries[5].settings.back(), "recompute.layers=32");
}

TEST(RowScenario, WhatCannotBeSimulatedSaysWhy) {
  const auto skipped = [](void (*change)(PublishedRow&)) {
    PublishedRow row = test::shipped_row("sc21-t1-06");
    change(row);
    const RowScenario result = mapped(row);
    return std::string(result.skipped ? to_string(*result.skipped) : "") + ": " + result.detail;
  };
  EXPECT_EQ(skipped([](PublishedRow& row) { row.layers.reset(), row.gbs.reset(); }),
            "configuration incomplete: not published: layers, gbs");
  EXPECT_EQ(skipped([](PublishedRow& row) { row.gpu = "TPUv4"; }),
            "hardware not modelled: GPU \"TPUv4\"");
  EXPECT_EQ(skipped([](PublishedRow& row) { row.model = "palm-540b"; }),
            "model not simulated: model \"palm-540b\"");
  EXPECT_EQ(skipped([](PublishedRow& row) { row.dtype = "int8"; }),
            "precision not simulated: precision \"int8\" is not known");
  EXPECT_EQ(skipped([](PublishedRow& row) { row.schedule = "chimera"; }),
            "schedule not simulated: schedule \"chimera\" is not known");
  EXPECT_EQ(skipped([](PublishedRow& row) { row.sharding = "zero9"; }),
            "parallelism not simulated: sharding \"zero9\" is not known");
}

// Absurd sizes are refused by reading the scenario; nothing overflows on the way.
TEST(RowScenario, HugeNumbersAreHarmless) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 53;
  PublishedRow row = test::shipped_row("sc21-t1-06");
  row.layers = row.hidden = row.gpus = row.tp = row.pp = row.cp = row.vpp = row.dp = kHuge;
  row.mbs = row.gbs = row.seq = row.ep = kHuge;
  row.heads.reset();
  row.ffn.reset();
  row.recompute.clear();
  EXPECT_FALSE(parse_scenario("{}", ".", mapped(row).settings).has_value());
}

}  // namespace
}  // namespace foretrain
