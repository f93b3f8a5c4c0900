#include "sim/validate/words.h"

#include "tests/validate/published_table.h"

#include "foretrain/scenario.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

/// Rule: the tables of words say nothing that no published row needs, and name only what exists.
namespace foretrain {
namespace {

const std::vector<std::string> kTables = {"published", "fits"};

template <typename Use>
void each_row(const Use& use) {
  for (const std::string& table : kTables) {
    for (const PublishedRow& row : test::shipped_rows(table)) {
      use(row);
    }
  }
}

TEST(Words, EverySourceIsUsed) {
  std::set<const PublishedSource*> used = {&published_sources().back()};
  each_row([&](const PublishedRow& row) { used.insert(&source_of(row)); });
  for (const PublishedSource& source : published_sources()) {
    EXPECT_TRUE(used.contains(&source)) << source.spelling << " " << source.detail;
  }
}

// The last row of a GPU is for a network that is not told: it may wait for its first use.
TEST(Words, EveryHardwareIsUsedAndExists) {
  std::set<const PublishedHardware*> used;
  std::set<std::string_view> gpus;
  each_row([&](const PublishedRow& row) {
    used.insert(hardware_of(row));
    gpus.insert(row.gpu);
  });
  for (const PublishedHardware& hardware : published_hardware()) {
    EXPECT_TRUE(used.contains(&hardware) || hardware.network.empty())
        << hardware.gpu << ", " << hardware.network;
    EXPECT_TRUE(gpus.contains(hardware.gpu)) << hardware.gpu;
    EXPECT_TRUE(read_topology(std::string(hardware.topology)).has_value()) << hardware.topology;
    PublishedRow untold;
    untold.gpu = hardware.gpu;
    EXPECT_NE(hardware_of(untold), nullptr) << hardware.gpu;
  }
}

// A group of 64 ranks lies in one domain of 72 only where 64 GPUs of each are used.
TEST(Words, JobsOfPowersOfTwoUsePartOfADomain) {
  PublishedRow row;
  row.gpu = "GB200";
  row.gpus = 256;
  EXPECT_EQ(hardware_of(row)->topology, "gb200-nvl72-64");
  row.gpus = 144;
  EXPECT_EQ(hardware_of(row)->topology, "gb200-nvl72");
}

TEST(Words, EveryModelIsUsed) {
  std::set<const ModelSpelling*> used;
  each_row([&](const PublishedRow& row) { used.insert(model_spelling_of(row)); });
  for (const ModelSpelling& model : model_spellings()) {
    EXPECT_TRUE(used.contains(&model)) << model.prefix;
  }
}

TEST(Words, EveryCutIsUsed) {
  for (const PublishedCut& cut : published_cuts()) {
    bool used = false;
    each_row([&](const PublishedRow& row) {
      used = used || (row.model.starts_with(cut.model) &&
                      row.pp.value_or(1) * row.vpp.value_or(1) == cut.chunks);
    });
    EXPECT_TRUE(used) << cut.layout;
  }
}

TEST(Words, EverySpellingIsUsed) {
  std::set<const Spelling*> used;
  each_row([&](const PublishedRow& row) {
    const PublishedSource& source = source_of(row);
    used.insert(spelling_of(PublishedColumn::kDtype, row.dtype, source));
    used.insert(spelling_of(PublishedColumn::kSharding, row.sharding, source));
    used.insert(spelling_of(PublishedColumn::kRecompute, row.recompute, source));
    used.insert(spelling_of(PublishedColumn::kSchedule, row.schedule, source));
    for (const Spelling* spelling : spellings_within(row, source)) {
      used.insert(spelling);
    }
  });
  for (const Spelling& spelling : spellings()) {
    EXPECT_TRUE(used.contains(&spelling)) << spelling.word;
  }
}

// What a published column says is in the table: no row of ours is skipped for its spelling.
TEST(Words, EveryPublishedWordIsKnown) {
  each_row([](const PublishedRow& row) {
    const PublishedSource& source = source_of(row);
    const auto known = [&](PublishedColumn column, const std::string& word) {
      return word.empty() || spelling_of(column, word, source) != nullptr;
    };
    EXPECT_TRUE(known(PublishedColumn::kDtype, row.dtype)) << row.id;
    EXPECT_TRUE(known(PublishedColumn::kSharding, row.sharding)) << row.id;
    EXPECT_TRUE(known(PublishedColumn::kRecompute, row.recompute)) << row.id;
    EXPECT_TRUE(known(PublishedColumn::kSchedule, row.schedule)) << row.id;
  });
}

// Every setting of every table is one that a scenario has: each alone on a tiny scenario is either
// read, or refused for its value, never as an unknown key.
TEST(Words, EverySettingIsAScenarios) {
  std::vector<std::string> settings;
  const auto add = [&](std::string_view text) {
    const std::vector<std::string> some = split_settings(text);
    settings.insert(settings.end(), some.begin(), some.end());
  };
  for (const PublishedSource& source : published_sources()) {
    add(source.settings);
    settings.push_back("parallelism.sharding=" + std::string(source.sharding));
  }
  for (const Spelling& spelling : spellings()) {
    add(spelling.settings);
  }
  const std::string tiny =
      R"({"model": "gpt2", "cluster": {"topology": "dgx-h100-ndr400", "gpus": 8},
          "training": {"sequence_length": 1024, "global_batch_size": 8}})";
  for (const std::string& setting : settings) {
    const Expected<Scenario> scenario = parse_scenario(tiny, ".", {setting});
    for (const Diagnostic& fault : scenario ? std::vector<Diagnostic>{} : scenario.error().list) {
      EXPECT_EQ(fault.message.find("unknown"), std::string::npos) << setting << fault.message;
    }
  }
}

// A label is one source's: groups of two would be mixed up.
TEST(Words, LabelsOfSourcesDiffer) {
  std::set<std::string_view> labels;
  for (const PublishedSource& source : published_sources()) {
    EXPECT_TRUE(labels.insert(source.label).second) << source.label;
  }
}

TEST(Words, SettingsSplitAtBars) {
  EXPECT_EQ(split_settings("a=b | c=d || e"), (std::vector<std::string>{"a=b", "c=d || e"}));
  EXPECT_TRUE(split_settings("").empty());
}

}  // namespace
}  // namespace foretrain
