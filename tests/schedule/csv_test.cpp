#include "foretrain/schedule.h"

#include <gtest/gtest.h>

/// Rule: a schedule written as text reads back as the same lists; text that is none is refused.
namespace foretrain {
namespace {

TEST(Csv, ReadsBackWhatItWrites) {
  for (const ScheduleEntry& entry : schedule_table()) {
    for (int p = 1; p <= 4; ++p) {
      const ScheduleSize size{.pp = p, .micro_batches = 2 * p, .vpp = entry.chunks != 1 ? 3 : 1};
      const Expected<Schedule> written = make_schedule(entry.name, size);
      ASSERT_TRUE(written.has_value());
      const Expected<Schedule> read = parse_schedule_csv(schedule_csv(*written));
      ASSERT_TRUE(read.has_value()) << read.error().list[0].message;
      EXPECT_EQ(read->ranks, written->ranks);
      EXPECT_EQ(read->size.pp, size.pp);
      EXPECT_EQ(read->size.micro_batches, size.micro_batches);
      EXPECT_EQ(read->size.vpp, size.vpp);
    }
  }
}

// PyTorch pads its files with empty cells; they mean nothing.
TEST(Csv, EmptyCellsAndLineEnds) {
  const Expected<Schedule> read = parse_schedule_csv("0F0, ,,0F1,0B0,0B1\r\n\n,1F0,1B0,1F1,,1B1");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(schedule_csv(*read), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

std::string fault_of(const char* text) {
  const Expected<Schedule> read = parse_schedule_csv(text);
  return read ? "accepted" : read.error().list[0].message;
}

TEST(Csv, Refusals) {
  EXPECT_EQ(fault_of(""), "no action in the text");
  EXPECT_EQ(fault_of("\n\n"), "no action in the text");
  EXPECT_EQ(fault_of("0F0,0B0,hello"), "line 1: \"hello\" is no action");
  EXPECT_EQ(fault_of("0F0,0B0\n1F0,1B0,2F0,2B0"), "3 stages cannot be shared by 2 ranks (lines)");
  EXPECT_NE(fault_of("0F0,(0F1;0B0)OVERLAP_F_B,0B1").find("overlapped unit"), std::string::npos);
  EXPECT_NE(fault_of("0F0,0I0,0W0").find("split backward"), std::string::npos);
  EXPECT_EQ(fault_of("0F0\n1F0,1B0"), "rank 0: 0B0 is missing");
  EXPECT_NE(fault_of("0F2147483646,0B0").find("cannot hold"), std::string::npos);
  EXPECT_NE(fault_of("2147483647F2147483647,0B0").find("cannot hold"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
