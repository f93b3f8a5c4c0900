#include "sim/validate/csv.h"

#include "sim/validate/published_row.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: a table is read as RFC 4180 has it, and every fault of it is told with its line.
namespace foretrain {
namespace {

using Fields = std::vector<std::string>;

TEST(Csv, QuotesCommasBreaksAndMarks) {
  const Expected<CsvTable> table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b,c\r\n1,\"x, y\",\r\n\r\n\"he said \"\"no\"\"\",\"two\nlines\",3");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->columns, (Fields{"a", "b", "c"}));
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].fields, (Fields{"1", "x, y", ""}));
  EXPECT_EQ(table->rows[0].line, 2);
  EXPECT_EQ(table->rows[1].fields, (Fields{"he said \"no\"", "two\nlines", "3"}));
  EXPECT_EQ(table->rows[1].line, 4);
}

// Any table written by the standard's rules reads back, whatever stands in its fields.
TEST(Csv, RandomTablesReadBack) {
  std::mt19937 random(7);
  const std::string letters = "ab,\"\n\r 1";
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Fields> rows(1 + random() % 5, Fields(2));
    std::string text = "p,q\n";
    for (Fields& row : rows) {
      for (std::string& field : row) {
        for (std::size_t i = random() % 6; i > 0; --i) {
          field += letters[random() % letters.size()];
        }
        std::string doubled;
        for (const char c : field) {
          doubled += c == '"' ? "\"\"" : std::string(1, c);
        }
        text += "\"" + doubled + "\"" + (&field == &row.back() ? "\n" : ",");
      }
    }
    const Expected<CsvTable> table = parse_csv(text);
    ASSERT_TRUE(table.has_value()) << text;
    ASSERT_EQ(table->rows.size(), rows.size()) << text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(table->rows[i].fields, rows[i]) << text;
    }
  }
}

struct Fault {
  std::string pointer, part;
};

void expect_faults(const Faults& faults, const std::vector<Fault>& expected) {
  ASSERT_EQ(faults.list.size(), expected.size()) << faults.list.front().message;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(faults.list[i].pointer, expected[i].pointer);
    EXPECT_NE(faults.list[i].message.find(expected[i].part), std::string::npos)
        << faults.list[i].message;
  }
}

TEST(Csv, EveryFaultAtOnce) {
  expect_faults(parse_csv("").error(), {{"", "empty"}});
  expect_faults(parse_csv("a,a,\n1,2\nx\"y,2,3\n\"z\"t,2,3\n4,5,\"never").error(),
                {{"/3", "inside a field"},
                 {"/4", "after the closing quote"},
                 {"/5", "never ends"},
                 {"/1", "\"a\" stands twice"},
                 {"/1", "column 3 has no name"},
                 {"/2", "2 fields, the header has 3"}});
}

const std::string kHeader = "id,model,layers,hidden,seq,gpu,gpus,tp,pp,gbs,sp,mfu,fits\n";

Faults row_faults(const std::string& text) {
  const Expected<std::vector<PublishedRow>> rows = published_rows(*parse_csv(text));
  return rows ? Faults{} : rows.error();
}

TEST(PublishedRows, FieldsAreTypedAndEmptyOnesAreNothing) {
  const Expected<std::vector<PublishedRow>> rows =
      published_rows(*parse_csv(kHeader + "a,gpt-x,24,1024,2048,A100,8,1,,16,0,0.5,no\n"));
  ASSERT_TRUE(rows.has_value());
  const PublishedRow& row = rows->front();
  EXPECT_EQ(row.model, "gpt-x");
  EXPECT_EQ(row.layers, 24);
  EXPECT_EQ(row.pp, std::nullopt);
  EXPECT_EQ(row.sp, 0);
  EXPECT_EQ(row.mfu, 0.5);
  EXPECT_EQ(row.fits, false);
  EXPECT_EQ(row.vocab, std::nullopt);
}

TEST(PublishedRows, EveryFaultAtOnce) {
  expect_faults(row_faults("id,model,layer,hidden,seq,gpu,gpus,tp,gbs\n"),
                {{"/1/layer", "unknown column \"layer\""},
                 {"/1", "\"layers\" is missing"},
                 {"/1", "\"pp\" is missing"}});
  expect_faults(row_faults(kHeader + "a,m,2.5,0,x,g,8,1,1,1,-1,inf,maybe\n" +
                           "a,m,1,1,1,g,99999999999999999999,1,1,1,,-1,\n,m,1,1,1,g,1,1,1,1,,,\n"),
                {{"/2/layers", "\"2.5\""},
                 {"/2/hidden", "\"0\""},
                 {"/2/seq", "\"x\""},
                 {"/2/sp", "\"-1\""},
                 {"/2/mfu", "\"inf\""},
                 {"/2/fits", "\"maybe\""},
                 {"/3/gpus", "from 1 to 2^53"},
                 {"/3/mfu", "\"-1\""},
                 {"/3/id", "another than in line 2"},
                 {"/4/id", "is empty"}});
}

// Columns of other tables are carried along.
TEST(PublishedRows, ForeignColumnsAreLeftAlone) {
  EXPECT_TRUE(row_faults("colour," + kHeader + "red,a,m,1,1,1,g,1,1,1,1,,,\n").list.empty());
}

}  // namespace
}  // namespace foretrain
