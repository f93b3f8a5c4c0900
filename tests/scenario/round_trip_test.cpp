// What is written reads back the same; and no change to a scenario makes the reader crash or lose
// layers.
#include "tests/scenario/example.h"

#include "sim/base/data_directory.h"
#include "sim/base/random.h"

#include <numeric>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

void expect_round_trip(const Scenario& scenario) {
  const std::string text = write_scenario(scenario);
  const Expected<Scenario> again = parse_scenario(text, "/");
  ASSERT_TRUE(again.has_value()) << text << "\n"
                                 << again.error().list.front().pointer << " "
                                 << again.error().list.front().message;
  EXPECT_EQ(write_scenario(*again), text);
  EXPECT_EQ(again->parallelism.layers_per_stage, scenario.parallelism.layers_per_stage);
  EXPECT_EQ(again->model, scenario.model);
}

void expect_sound(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  const std::vector<std::int64_t>& split = p.layers_per_stage;
  EXPECT_EQ(static_cast<std::int64_t>(split.size()), p.pp * p.vpp);
  EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), scenario.model.layers);
  EXPECT_EQ(p.tp * p.cp * p.pp * p.dp, scenario.cluster.gpus);
  EXPECT_EQ(scenario.micro_batches() * p.dp * scenario.training.micro_batch_size,
            scenario.training.global_batch_size);
}

TEST(RoundTrip, EveryScenarioShipped) {
  const std::vector<std::string> names = preset_names("scenarios");
  ASSERT_GE(names.size(), 7U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Expected<Scenario> scenario = read_scenario(name);
    ASSERT_TRUE(scenario.has_value());
    EXPECT_EQ(scenario->name, name);
    expect_sound(*scenario);
    expect_round_trip(*scenario);
  }
}

TEST(RoundTrip, DefaultsAreThoseOfTheInterface) {
  const Expected<Scenario> scenario = parse_scenario(kExample);
  ASSERT_TRUE(scenario.has_value());
  const Parallelism& p = scenario->parallelism;
  EXPECT_EQ(p.vpp, 1);
  EXPECT_EQ(p.dp, 2);
  EXPECT_EQ(p.sharding, Sharding::kZero1);
  EXPECT_TRUE(p.sequence_parallel);
  EXPECT_FALSE(p.embedding_and_loss_as_layers);
  EXPECT_EQ(p.order, "tp-cp-ep-dp-pp");
  EXPECT_EQ(p.layers_per_stage, (std::vector<std::int64_t>{20, 20, 20, 20}));
  EXPECT_EQ(scenario->schedule.name, "1f1b");
  EXPECT_EQ(scenario->training.micro_batch_size, 1);
  EXPECT_EQ(scenario->training.dtype.grads, DataType::kFp32);
  EXPECT_EQ(scenario->stack.name, "megatron-2024");
  EXPECT_TRUE(scenario->overlap.dp_grad && scenario->overlap.dp_param && scenario->overlap.pp);
  EXPECT_FALSE(scenario->overlap.tp || scenario->overlap.ep);
  EXPECT_EQ(scenario->network.routing, "destination");
}

// Rule: contention is modelled unless a scenario says otherwise, or its costs do without.
TEST(RoundTrip, ContentionIsModelledStatedOrNone) {
  const auto written = [](const std::vector<std::string>& overrides) {
    const Expected<Scenario> scenario = parse_scenario(kExample, ".", overrides);
    const std::string text = scenario ? write_scenario(*scenario) : "refused";
    const std::size_t at = text.find("\"contention\": ") + 14;
    return text.substr(at, text.find_first_of(",\n}", at) - at);
  };
  EXPECT_EQ(written({}), "\"modelled\"");
  EXPECT_EQ(written({"overlap.contention=modelled"}), "\"modelled\"");
  EXPECT_EQ(written({"overlap.contention=none"}), "\"none\"");
  EXPECT_EQ(written({"overlap.contention=1"}), "\"none\"");
  EXPECT_EQ(written({"overlap.contention=1.25"}), "1.25");
  EXPECT_EQ(written({"costs=constant"}), "\"none\"");
  EXPECT_EQ(written({"costs=constant", "overlap.contention=2"}), "2.0");
}

/// One of some values for each of some keys; many combinations are illegal, which is the point.
std::vector<std::string> random_overrides(std::uint64_t seed) {
  const std::vector<std::vector<std::string>> keys = {
      {"parallelism.tp", "1", "2", "4", "8", "3", "16"},
      {"parallelism.pp", "1", "2", "4", "8", "5", "16"},
      {"parallelism.cp", "1", "2", "4"},
      {"parallelism.vpp", "1", "2", "4", "5"},
      {"parallelism.layers_per_stage", "[20,20,20,20]", "[22,22,22,14]", "[40,40]", "[80]"},
      {"parallelism.first_stage_layers", "8", "20", "0"},
      {"parallelism.last_stage_layers", "12", "20"},
      {"parallelism.layout", "Et*40|t*40L", "(Et*20|t*20)(|t*20)*2,L", "E|t*80|L"},
      {"parallelism.embedding_and_loss_as_layers", "true", "false"},
      {"parallelism.sharding", "none", "zero1", "zero2", "zero3"},
      {"parallelism.bucket_bytes", "0", "\"40 MB\""},
      {"parallelism.shard_group", "1", "2"},
      {"cluster.gpus", "64", "128", "8", "160"},
      {"training.global_batch_size", "512", "510", "64"},
      {"training.micro_batch_size", "1", "2"},
      {"training.dtype",
       "bf16",
       "fp16",
       "fp8",
       R"({"compute":"fp8","moments":"bf16"})",
       R"({"compute":"fp8","recipe":"blockwise"})"},
      {"training.grad_dtype", "bf16", "fp32"},
      {"schedule", "gpipe", "1f1b", "interleaved", "zb-v", R"({"name":"1f1b","barrier":false})"},
      {"recompute", R"({"mode":"full","layers":3})", R"({"modules":["mlp"]})"},
      {"costs", "constant", R"({"model":"constant","link_latency":"1.5 us"})"},
      {"overlap.contention", "modelled", "none", "1.5"},
      {"stack", "megatron-2021", R"({"name":"textbook","host_launch":"2 us"})"},
      {"perturbations",
       R"([{"kind":"pause","ranks":"all","length":"50 ms","period":"10 s","steps":[1,3]}])",
       R"([{"kind":"jitter","sigma":0.05},{"kind":"expert_imbalance","factor":1.2}])"},
  };
  std::vector<std::string> overrides;
  std::uint64_t draw = 0;
  for (const std::vector<std::string>& key : keys) {
    const std::uint64_t bits = random_bits(seed, 1, draw++);
    if (bits % 4 == 0) {
      overrides.push_back(key[0] + "=" + key[1 + (bits >> 8) % (key.size() - 1)]);
    }
  }
  return overrides;
}

TEST(RoundTrip, RandomScenariosAreSoundOrRefused) {
  int good = 0;
  constexpr std::uint64_t kTries = 600;
  for (std::uint64_t seed = 0; seed < kTries; ++seed) {
    const Expected<Scenario> scenario = parse_scenario(kExample, ".", random_overrides(seed));
    if (!scenario) {
      ASSERT_FALSE(scenario.error().list.empty());
      continue;
    }
    SCOPED_TRACE(seed);
    ++good;
    expect_sound(*scenario);
    expect_round_trip(*scenario);
  }
  EXPECT_GT(good, 50) << "the draws hardly ever make a legal scenario";
}

// Bytes changed at random: nothing crashes, and what is still accepted is still sound.
TEST(RoundTrip, MutatedTextIsSoundOrRefused) {
  const std::string text = write_scenario(*parse_scenario(kExample));
  const std::string alphabet = "{}[]\",:0123456789.-e truefalsn\\xyz";
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::string mutated = text;
    const std::uint64_t edits = 1 + random_bits(seed, 2, 0) % 3;
    for (std::uint64_t edit = 1; edit <= edits; ++edit) {
      const std::uint64_t bits = random_bits(seed, 2, edit);
      const std::size_t at = (bits >> 20) % mutated.size();
      const char letter = alphabet[(bits >> 8) % alphabet.size()];
      if (bits % 3 == 0) {
        mutated.erase(at, 1);
      } else if (bits % 3 == 1) {
        mutated.insert(at, 1, letter);
      } else {
        mutated[at] = letter;
      }
    }
    if (const Expected<Scenario> scenario = parse_scenario(mutated)) {
      SCOPED_TRACE(mutated);
      expect_sound(*scenario);
    }
  }
}

}  // namespace
}  // namespace foretrain
