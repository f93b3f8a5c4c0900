#include "tests/support/command.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain validate` answers with its exit code, keeps its channels apart, and prints the
/// same whatever the threads.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

Outcome validate(const std::string& arguments) {
  return test::run_program("validate " + arguments);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A table in a file of its own.
std::string table_file(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

const std::string kHeader =
    "id,split,source,model,layers,hidden,heads,ffn,vocab,seq,gpu,gpus,internode_bw_note,dtype,tp,"
    "pp,"
    "vpp,sharding,sp,mbs,gbs,recompute,schedule,step_time_s,fits\n";

/// Narayanan et al. 2021, Table 1, row 2; the same without some fields; and one that is skipped.
std::string small_table() {
  return table_file(
      "small.csv",
      kHeader +
          "a,fit,SC21,GPT-3.6B,30,3072,32,12288,51200,2048,A100-80GB,64,8x200Gb/"
          "s,fp16,2,1,1,zero0,0,"
          "16,512,full,none,3.697,yes\r\n"
          "b,fit,\"a blog, "
          "unknown\",GPT-3.6B,30,3072,,,,2048,A100-80GB,64,,,2,1,,,,,512,,,3.5,no\r\n"
          "c,coarse,SC21,GPT-3.6B,30,3072,32,12288,51200,2048,A100-80GB,60,,fp16,8,1,1,zero0,0,16,"
          "512,full,none,3.697,\r\n");
}

TEST(ValidateCommand, JsonHasTheFields) {
  const Outcome outcome = validate(small_table() + " --json - 2>&1");
  EXPECT_EQ(outcome.code, 0);
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("n"), 3);
  EXPECT_EQ(result.at("skipped"), 1);
  EXPECT_DOUBLE_EQ(result.at("coverage").get<double>(), 2.0 / 3);
  EXPECT_EQ(result.at("reasons"), (json{{"illegal layout as published", 1}}));
  const json& first = result.at("rows").at(0);
  EXPECT_EQ(first.at("id"), "a");
  EXPECT_EQ(first.at("status"), "ok");
  EXPECT_EQ(first.at("measured_s"), 3.697);
  EXPECT_DOUBLE_EQ(first.at("error").get<double>(),
                   first.at("simulated_s").get<double>() / 3.697 - 1);
  EXPECT_TRUE(first.at("assumed").empty());
  EXPECT_TRUE(first.at("reason").is_null());
  const json& skipped = result.at("rows").at(2);
  EXPECT_EQ(skipped.at("status"), "skipped");
  EXPECT_EQ(skipped.at("reason"), "illegal layout as published");
  EXPECT_FALSE(skipped.at("detail").get<std::string>().empty());
  EXPECT_TRUE(skipped.at("simulated_s").is_null());
  EXPECT_TRUE(skipped.at("error").is_null());
  ASSERT_EQ(result.at("groups").size(), 2U);
  const json& group = result.at("groups").at(1);
  EXPECT_EQ(group.at("source"), "sc21");
  EXPECT_EQ(group.at("gpu"), "A100");
  EXPECT_EQ(group.at("dtype"), "fp16");
  EXPECT_EQ(group.at("n"), 1);
  EXPECT_NEAR(group.at("mape").get<double>(), std::abs(first.at("error").get<double>()), 1e-12);
  EXPECT_TRUE(group.at("kendall_tau").is_null());
  EXPECT_EQ(result.at("memory").at("n"), 2);
  EXPECT_TRUE(result.at("mape").is_number() && result.at("median_ape").is_number());
}

TEST(ValidateCommand, TextFitsThePageAndNamesEverything) {
  const Outcome outcome = validate(small_table());
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"3 rows · 2 simulated, 1 skipped",
                           "a blog, unknown",
                           "furthest off",
                           "assumed 24 heads",
                           "1  illegal layout as published",
                           "nothing assumed",
                           "66.7 % of all rows"}) {
    EXPECT_TRUE(says(outcome.out, part)) << part << "\n" << outcome.out;
  }
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    int columns = 0;
    for (const char c : line) {
      columns += (static_cast<unsigned char>(c) & 0xC0U) == 0x80U ? 0 : 1;
    }
    EXPECT_LE(columns, 100) << line;
  }
}

TEST(ValidateCommand, ThreadsAndRepeatsPrintTheSameBytes) {
  const std::string once = validate(small_table() + " --json - --threads 1").out;
  for (const char* threads : {"1", "2", "3", "4"}) {
    EXPECT_EQ(validate(small_table() + " --json - --threads " + threads).out, once);
  }
}

TEST(ValidateCommand, SplitsAndShippedTables) {
  EXPECT_EQ(json::parse(validate(small_table() + " --split coarse --json -").out).at("n"), 1);
  const Outcome unknown = validate(small_table() + " --split test 2>&1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(says(unknown.out, "known: fit, coarse")) << unknown.out;
  const json fits = json::parse(validate("fits --json -").out);
  EXPECT_EQ(fits.at("memory").at("n"), 607);
  EXPECT_TRUE(fits.at("mape").is_null());
}

TEST(ValidateCommand, EveryFaultAtOnceAndItsExitCode) {
  const std::string bad =
      table_file("bad.csv", kHeader + "a,,,m,x,1,,,,0,g,1,,,1,1,,,,,1,,,-1,\nshort\n");
  const Outcome width = validate(bad + " 2>&1");
  EXPECT_EQ(width.code, 2);
  EXPECT_TRUE(says(width.out, "/3")) << width.out;
  const std::string wrong = table_file(
      "wrong.csv",
      kHeader + "a,,,m,x,1,,,,0,g,1,,,1,1,,,,,1,,,-1,\na,,,m,1,1,,,,1,g,1,,,1,1,,,,,1,,,,\n");
  const Outcome fields = validate(wrong + " --json -");
  EXPECT_EQ(fields.code, 2);
  std::set<std::string> pointers;
  const json told = json::parse(fields.out);
  for (const json& fault : told.at("faults")) {
    pointers.insert(fault.at("pointer"));
  }
  EXPECT_EQ(pointers, (std::set<std::string>{"/2/layers", "/2/seq", "/2/step_time_s", "/3/id"}));
  EXPECT_EQ(validate("no/such.csv 2>&1").code, 3);
  const Outcome unknown = validate("publishd 2>&1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(says(unknown.out, "did you mean \"published\"?")) << unknown.out;
  EXPECT_EQ(validate("2>&1").code, 2);
  EXPECT_EQ(validate("published --splt x 2>&1").code, 2);
}

TEST(ValidateCommand, NeverOverwritesItsTable) {
  const std::string path = small_table();
  EXPECT_EQ(validate(path + " --json " + path + " 2>&1").code, 2);
  EXPECT_GT(std::filesystem::file_size(path), 400U);
}

TEST(ValidateCommand, HelpNamesTheTables) {
  const Outcome outcome = validate("--help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(says(outcome.out, "fits, published") && says(outcome.out, "--split")) << outcome.out;
}

}  // namespace
}  // namespace foretrain
