// The cursor reports every fault of a text at once, each at its own pointer.
#include "sim/scenario/json_cursor.h"

#include <gtest/gtest.h>

namespace foretrain {
namespace {

std::string line(const Diagnostic& fault) {
  return fault.pointer + " | " + fault.message + " | " + fault.hint;
}

TEST(JsonText, WhatIsNotJsonSaysLineAndColumn) {
  const Expected<JsonValue> value = parse_json("{\"a\": 1,\n  \"b\": ]}");
  ASSERT_FALSE(value.has_value());
  ASSERT_EQ(value.error().list.size(), 1U);
  EXPECT_EQ(value.error().list[0].pointer, "");
  EXPECT_NE(value.error().list[0].message.find("line 2, column 8"), std::string::npos)
      << value.error().list[0].message;
}

TEST(JsonText, EmptyTextAndTextAfterTheValueAreNotJson) {
  EXPECT_FALSE(parse_json("").has_value());
  EXPECT_FALSE(parse_json("{} {}").has_value());
  EXPECT_FALSE(parse_json("{\"a\": NaN}").has_value());
  EXPECT_FALSE(parse_json("{\"a\": 1e999}").has_value());
  EXPECT_FALSE(parse_json("{\"a\": \"\xFF\"}").has_value());
}

TEST(JsonText, AKeyGivenTwiceIsAFaultAtItsPointer) {
  const Expected<JsonValue> value = parse_json(R"({"a": [{"b/c": 1}, {"b/c": 1, "b/c": 2}]})");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(line(value.error().list.at(0)), "/a/1/b~1c | the key is given twice | ");
}

TEST(JsonText, DepthIsLimited) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')).has_value());
  EXPECT_FALSE(parse_json(std::string(65, '[') + std::string(65, ']')).has_value());
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')).has_value());
}

TEST(JsonText, KeysKeepTheirOrder) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": 2})")->keys, (std::vector<std::string>{"z", "a"}));
}

class Cursor : public testing::Test {
 protected:
  JsonCursor at(const std::string& text) {
    value_ = *parse_json(text);
    return JsonCursor(value_, "", faults_);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const Diagnostic& fault : faults_) {
      all.push_back(line(fault));
    }
    return all;
  }

  JsonValue value_;
  std::vector<Diagnostic> faults_;
};

TEST_F(Cursor, ReadsWhatIsThereAndKeepsTheRest) {
  JsonCursor root =
      at(R"({"tp": 8, "name": "x", "on": true, "f": 0.5, "t": "5 us", "whole": 4.0})");
  std::int64_t tp = 1, cp = 7, whole = 0;
  std::string name;
  bool on = false;
  double f = 0;
  Duration t{};
  EXPECT_TRUE(root.read("tp", tp));
  EXPECT_FALSE(root.read("cp", cp));
  EXPECT_TRUE(root.read("whole", whole));
  EXPECT_TRUE(root.read("name", name));
  EXPECT_TRUE(root.read("on", on));
  EXPECT_TRUE(root.read("f", f));
  EXPECT_TRUE(root.read("t", t));
  root.finish();
  EXPECT_EQ(lines(), std::vector<std::string>{});
  EXPECT_EQ(tp, 8);
  EXPECT_EQ(cp, 7);
  EXPECT_EQ(whole, 4);
  EXPECT_EQ(name, "x");
  EXPECT_TRUE(on);
  EXPECT_EQ(f, 0.5);
  EXPECT_EQ(t, Duration{5'000'000});
}

TEST_F(Cursor, EveryFaultAtOnceEachAtItsPointer) {
  JsonCursor root = at(R"({"tp": 0, "pp": "4", "cp": 2.5, "dp": 9007199254740993, "seed": -1,
                           "on": 1, "time": 5, "paralelism": {}})");
  std::int64_t n = 0;
  bool on = false;
  Duration t{};
  root.read("tp", n, kPositive);
  root.read("pp", n, kPositive);
  root.read("cp", n, kPositive);
  root.read("dp", n, kPositive);
  root.read("seed", n);
  root.read("on", on);
  root.read("time", t);
  root.member("parallelism");
  root.require("model", "a preset's name");
  root.finish();
  EXPECT_EQ(lines(),
            (std::vector<std::string>{
                "/tp | must be a positive integer, at most 2^53, not 0 | ",
                "/pp | must be a positive integer, at most 2^53, not \"4\" | ",
                "/cp | must be a positive integer, at most 2^53, not 2.5 | ",
                "/dp | must be a positive integer, at most 2^53, not 9007199254740993 | ",
                "/seed | must be an integer from 0 to 2^53, not -1 | ",
                "/on | must be true or false, not 1 | ",
                "/time | 5 has no unit | write it with its unit, e.g. \"5 us\"",
                "/model | missing | a preset's name",
                "/paralelism | unknown key | did you mean \"parallelism\"?",
            }));
  EXPECT_EQ(n, 0) << "a target keeps its value when the member is wrong";
}

TEST_F(Cursor, ChoicesSuggestTheNearest) {
  constexpr std::string_view kModes[] = {"analytic", "flow"};
  JsonCursor root = at(R"({"mode": "analitic", "other": "x"})");
  std::string mode = "flow";
  root.read("mode", mode, kModes);
  root.read("other", mode, kModes);
  EXPECT_EQ(lines(),
            (std::vector<std::string>{
                "/mode | unknown value \"analitic\" | did you mean \"analytic\"?",
                "/other | unknown value \"x\" | one of: analytic, flow",
            }));
}

}  // namespace
}  // namespace foretrain
