#include "foretrain/collective.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: the calibrated collectives tell what nccl-tests showed on such machines: from 1 MiB up
/// the median error of every table is below 10 %. The tables are others' measurements; each row of
/// measured_collectives.csv names its own.
namespace foretrain {
namespace {

struct Measured {
  std::string table, topology;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t ranks = 0, bytes = 0;
  double seconds = 0;
};

std::vector<Measured> measured_rows() {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/tests/cost/measured_collectives.csv");
  std::vector<Measured> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string op, ranks, bytes, time;
    Measured row;
    std::getline(cells, row.table, ',');
    std::getline(cells, row.topology, ',');
    std::getline(cells, op, ',');
    std::getline(cells, ranks, ',');
    std::getline(cells, bytes, ',');
    std::getline(cells, time, ',');
    row.kind = op == "all_gather"       ? CollectiveKind::kAllGather
               : op == "reduce_scatter" ? CollectiveKind::kReduceScatter
                                        : CollectiveKind::kAllReduce;
    row.ranks = std::stoll(ranks);
    row.bytes = std::stoll(bytes);
    row.seconds = std::stod(time) * 1e-6;
    rows.push_back(row);
  }
  return rows;
}

GroupShape shape_of(const TopologySpec& spec, std::int64_t ranks) {
  const std::int64_t nodes = (ranks + spec.gpus_per_node - 1) / spec.gpus_per_node;
  const Expected<Topology> topology = Topology::build(spec, nodes * spec.gpus_per_node);
  std::vector<std::int64_t> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  return topology->group_shape(group);
}

CollectiveCost modelled(const Measured& row) {
  const TopologySpec spec = *read_topology(row.topology);
  return collective_cost(row.kind, Bytes{row.bytes}, shape_of(spec, row.ranks), link_model(spec));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of one table from 1 MiB up.
struct TableErrors {
  std::vector<double> all;           ///< without their signs
  std::vector<std::int64_t> beyond;  ///< sizes that are more than 20 % off
  double worst() const { return *std::max_element(all.begin(), all.end()); }
};

std::map<std::string, TableErrors> errors_by_table() {
  std::map<std::string, TableErrors> errors;
  for (const Measured& row : measured_rows()) {
    if (row.bytes < (1 << 20)) {
      continue;
    }
    const CollectiveCost cost = modelled(row);
    const double error = seconds(cost.total()) / row.seconds - 1.0;
    TableErrors& table = errors[row.table];
    table.all.push_back(std::abs(error));
    if (std::abs(error) > 0.2) {
      table.beyond.push_back(row.bytes);
    }
    std::printf("%-14s %3lld ranks %12lld B %10.1f us measured %10.1f us %+6.1f %% %s, %s%s\n",
                row.table.c_str(),
                static_cast<long long>(row.ranks),
                static_cast<long long>(row.bytes),
                row.seconds * 1e6,
                seconds(cost.total()) * 1e6,
                error * 100,
                std::string(cost.algorithm).c_str(),
                std::string(cost.protocol).c_str(),
                std::abs(error) > 0.2 ? "  <- outlier" : "");
  }
  return errors;
}

TEST(MeasuredCollectives, MediansOfEveryTable) {
  const std::map<std::string, TableErrors> errors = errors_by_table();
  ASSERT_EQ(errors.size(), 16U);
  for (const auto& [table, of] : errors) {
    EXPECT_LT(median(of.all), 0.10) << table;
  }
}

std::string model_text() {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/MODEL.md");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Numbers of a cell, as they are written: "5.9 / 7.1 %" is 5.9 and 7.1.
std::vector<std::string> numbers_of(const std::string& cell) {
  std::vector<std::string> numbers;
  for (std::size_t at = cell.find_first_of("0123456789"); at != std::string::npos;) {
    const std::size_t end = cell.find_first_not_of("0123456789.", at);
    numbers.push_back(cell.substr(at, end - at));
    at = cell.find_first_of("0123456789", end);
  }
  return numbers;
}

std::string percent_text(double share, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, share * 100);
  return text.data();
}

// Rule: the table of MODEL 4.5 is what comes out, digit by digit, and so is what it says is far
// off.
TEST(MeasuredCollectives, TheModelDocumentTellsThem) {
  const std::map<std::string, TableErrors> errors = errors_by_table();
  struct DocumentRow {
    const char* begins;
    std::vector<std::string> tables;
  };
  const DocumentRow rows[] = {
      {"A100, 2 / 8 GPUs; 16 / 64 on 2 / 8 nodes (Echo",
       {"echo-2", "echo-8", "echo-16", "echo-64"}},
      {"A100, 2 / 4 / 8 GPUs (vTrain)", {"vtrain-2", "vtrain-4", "vtrain-8"}},
      {"A100, 8 GPUs (stas00", {"ml-a100-8"}},
      {"H200, 8 GPUs NVLS", {"ml-h200-8", "ml-h200-sizes"}},
      {"B200, 8 GPUs", {"ml-b200-8", "ml-b200-sizes"}},
      {"B200, 4 nodes over EFA", {"ml-b200-32"}},
      {"H100, 2 nodes, GCP a3-mega", {"gcp-h100-16"}},
      {"GB200 NVL72, 72 GPUs", {"cw-gb200-72"}}};
  const std::string text = model_text();
  std::size_t told = 0;
  for (const DocumentRow& row : rows) {
    const std::size_t at = text.find(std::string("\n| ") + row.begins);
    ASSERT_NE(at, std::string::npos) << "MODEL 4.5 has no row \"" << row.begins << "\"";
    const std::size_t medians = text.find('|', at + 3), worsts = text.find('|', medians + 1);
    const std::size_t end = text.find('|', worsts + 1);
    std::vector<std::string> expected_medians, expected_worsts;
    for (const std::string& table : row.tables) {
      expected_medians.push_back(percent_text(median(errors.at(table).all), 1));
      expected_worsts.push_back(percent_text(errors.at(table).worst(), 0));
    }
    EXPECT_EQ(numbers_of(text.substr(medians, worsts - medians)), expected_medians) << row.begins;
    EXPECT_EQ(numbers_of(text.substr(worsts, end - worsts)), expected_worsts) << row.begins;
    told += row.tables.size();
  }
  EXPECT_EQ(told + 1, errors.size()) << "all but ml-h200-ops, which is no all-reduce";

  std::map<std::string, std::vector<std::int64_t>> beyond;
  for (const auto& [table, of] : errors) {
    if (!of.beyond.empty()) {
      beyond[table] = of.beyond;
    }
  }
  constexpr std::int64_t kMebi = 1 << 20;
  EXPECT_EQ(
      beyond,
      (std::map<std::string, std::vector<std::int64_t>>{
          {"echo-2", {kMebi, 2 * kMebi}}, {"ml-a100-8", {kMebi}}, {"ml-b200-8", {4 * kMebi}}}));
  EXPECT_NE(text.find("More than 20 % off: 2 A100 at 1 and 2 MiB (Echo), 8 A100 at 1 MiB "
                      "(ml-engineering), B200 at 4 MiB."),
            std::string::npos);
}

/// nccl-tests at 8 GiB (stas00/ml-engineering): the ring up to four H200, the switch from five on.
TEST(MeasuredCollectives, TheSwitchReducesForMoreThanFour) {
  for (std::int64_t ranks = 2; ranks <= 8; ++ranks) {
    const Measured row{"", "hgx-h200-ndr400", CollectiveKind::kAllReduce, ranks, 8LL << 30, 0};
    EXPECT_EQ(modelled(row).algorithm, ranks <= 4 ? "ring" : "nvls") << ranks;
  }
}

}  // namespace
}  // namespace foretrain
