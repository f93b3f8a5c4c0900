#include "foretrain/schedule.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: a schedule written as text reads back as the same lists; text that is none is refused.
namespace foretrain {
namespace {

/// A small legal size of each schedule: the reading, not the generators, is tested here.
std::optional<Schedule> small(const ScheduleEntry& entry, int p, int vpp) {
  ScheduleSize size{.pp = p, .micro_batches = 4 * p, .vpp = entry.chunks > 0 ? entry.chunks : vpp};
  size.slices = entry.uses_slices ? 3 : 1;
  Expected<Schedule> schedule = make_schedule(entry.name, size);
  return schedule ? std::optional(*std::move(schedule)) : std::nullopt;
}

TEST(Csv, ReadsBackWhatItWrites) {
  for (const ScheduleEntry& entry : schedule_table()) {
    int read_back = 0;
    for (int p = 1; p <= 4; ++p) {
      for (int vpp = 1; vpp <= 3; ++vpp) {
        const std::optional<Schedule> written = small(entry, p, vpp);
        if (!written) {
          continue;
        }
        SCOPED_TRACE(std::string(entry.name) + " p " + std::to_string(p));
        const Expected<Schedule> read = parse_schedule_csv(schedule_csv(*written));
        ASSERT_TRUE(read.has_value()) << read.error().list[0].message;
        EXPECT_EQ(read->ranks, written->ranks);
        EXPECT_EQ(read->size.pp, written->size.pp);
        EXPECT_EQ(read->size.micro_batches, written->size.micro_batches);
        EXPECT_EQ(read->size.vpp, written->size.vpp);
        EXPECT_EQ(read->size.slices, written->size.slices);
        EXPECT_EQ(read->note, "");
        if (p > 1 && written->size.vpp > 1) {
          EXPECT_EQ(read->placement, written->placement);
        }
        ++read_back;
      }
    }
    EXPECT_GT(read_back, 1) << entry.name;
  }
}

std::string read_and_written(std::string_view text) {
  const Expected<Schedule> read = parse_schedule_csv(text);
  return read ? schedule_csv(*read) : "refused: " + read.error().list[0].message;
}

// The published lists of DualPipeV for p = 2, m = 4: a V of two chunks, units in parentheses.
TEST(Csv, OverlappedUnitsOnAV) {
  const std::string text =
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
      "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
      "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
      "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n";
  EXPECT_EQ(read_and_written(text), text);
  const Expected<Schedule> read = parse_schedule_csv(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->placement, Placement::kV);
  EXPECT_EQ(read->size.vpp, 2);
  EXPECT_EQ(read->size.micro_batches, 4);
  const Expected<ScheduleTiming> timing = time_schedule(*read, {});
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->makespan.count(), 26);
}

// Sweeps of a V: stage 4 is under stage 0 again, stage 5 under stage 1.
TEST(Csv, FourSweepsOfAV) {
  const std::string list = "0F0,3F0,4F0,7F0,7B0,4B0,3B0,0B0\n1F0,2F0,5F0,6F0,6B0,5B0,2B0,1B0\n";
  ASSERT_EQ(read_and_written(list), list);
  EXPECT_EQ(parse_schedule_csv(list)->placement, Placement::kV);
  EXPECT_EQ(parse_schedule_csv(list)->size.vpp, 4);
}

TEST(Csv, TwoCopiesAndSlices) {
  const std::string copies =
      "0F0@0,1F1@1,1B1@1,0B0@0\n"
      "0F1@1,1F0@0,1B0@0,0B1@1\n";
  ASSERT_EQ(read_and_written(copies), copies);
  EXPECT_EQ(parse_schedule_csv(copies)->placement, Placement::kBidirectional);
  EXPECT_EQ(parse_schedule_csv(copies)->copies(), 2);
  const std::string slices = "0F0.0,0F0.1,0B0.1,0B0.0\n";
  ASSERT_EQ(read_and_written(slices), slices);
  EXPECT_EQ(parse_schedule_csv(slices)->size.slices, 2);
  EXPECT_EQ(read_and_written("0F0.0,0B0.0\n"), "0F0,0B0\n");
}

// PyTorch pads its files with empty cells; they mean nothing. Any line end will do.
TEST(Csv, EmptyCellsAndLineEnds) {
  const std::string lists = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(read_and_written("0F0, ,,0F1,0B0,0B1\r\n\n,1F0,1B0,1F1,,1B1"), lists);
  EXPECT_EQ(read_and_written("\xEF\xBB\xBF"
                             "0F0,0F1,0B0,0B1,,\r1F0,1B0,1F1,None,1B1\r"),
            lists);
}

// Cells as other programs write them: quoted, under titles, behind the rank's number.
TEST(Csv, TablesOfOtherPrograms) {
  const std::string lists = "0F0,0B0\n1F0,1B0\n";
  EXPECT_EQ(read_and_written("\"0F0\",\"0B0\"\n \"1F0\" ,1B0"), lists);
  EXPECT_EQ(read_and_written("0,1\n0F0,0B0\n1F0,1B0\n"), lists);
  EXPECT_EQ(read_and_written(",step 0,step 1\n0,0F0,0B0\n1,1F0,1B0\n"), lists);
  EXPECT_EQ(read_and_written("rank 0,0F0,0B0\nRank 1,1F0,1B0\n"), lists);
  const std::string unit = "0F0,( 0F1 ; 0B0 )OVERLAP_F_B,0B1";
  EXPECT_EQ(read_and_written(unit), "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
}

// PyTorch's own zb1p files write B where the input half is meant; W tells. The list is zb-h1's.
TEST(Csv, OldFilesWriteBForTheInputHalf) {
  const Expected<Schedule> read = parse_schedule_csv("0F0,0F1,0B0,0W0,0B1,0W1\n1F0,1B0,1F1,1B1\n");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(schedule_csv(*read), "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1B0,1F1,1B1\n");
  EXPECT_NE(read->note.find("2 B that a W follows are read as I"), std::string::npos) << read->note;
  // A file that knows I means B when it says B.
  EXPECT_EQ(read_and_written("0F0,0F1,0B0,0W0,0I1,0W1"),
            "refused: rank 0: 0W0 stands before its input gradient");
}

// PyTorch's own dumps hold communication by default. A valid list without it is valid with it, as
// transfers follow from the computations; BW was a whole backward while B was the input half.
TEST(Csv, DumpsWithCommunication) {
  const Expected<Schedule> read = parse_schedule_csv(
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0BW0,0RECV_B1,0BW1,0REDUCE_GRAD\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1W0,1RECV_F1,1F1,1B1,1SEND_B1,1W1,1RESHARD\n");
  ASSERT_TRUE(read.has_value()) << read.error().list[0].message;
  EXPECT_EQ(schedule_csv(*read), "0F0,0F1,0B0,0B1\n1F0,1I0,1W0,1F1,1I1,1W1\n");
  EXPECT_EQ(read->note.substr(0, 41), "11 sends, receives and gathers are left o");
  EXPECT_NE(read->note.find("; the lists have W but no I: 2 B"), std::string::npos) << read->note;
  for (const char* cell : {"SEND_F0", "0SEND_X0", "0RECV", "0SEND_F0x", "0WB0", "0BWB0"}) {
    EXPECT_EQ(read_and_written("0F0,0B0," + std::string(cell)),
              "refused: line 1: \"" + std::string(cell) + "\" is no action");
  }
}

Diagnostic fault_in(std::string_view text) {
  const Expected<Schedule> read = parse_schedule_csv(text);
  return read ? Diagnostic{"", "accepted", ""} : read.error().list[0];
}

std::string fault_of(std::string_view text) {
  return fault_in(text).message;
}

TEST(Csv, Refusals) {
  EXPECT_EQ(fault_of(""), "no action in the text");
  EXPECT_EQ(fault_of("\n\n"), "no action in the text");
  EXPECT_EQ(fault_of("hello"), "no action in the text");
  EXPECT_EQ(fault_of("0F0,0B0,hello"), "line 1: \"hello\" is no action");
  EXPECT_EQ(fault_of("0f0,0b0"), "line 1: \"0f0\" is no action");
  EXPECT_EQ(fault_of("F0,B0"), "line 1: \"F0\" is no action");
  EXPECT_EQ(fault_of("0F0;0B0"), "line 1: \"0F0;0B0\" is no action");
  EXPECT_EQ(fault_of("0F0,0B0\n1F0,1B0,2F0,2B0"), "3 stages cannot be shared by 2 ranks (lines)");
  EXPECT_EQ(fault_of("0F0\n1F0,1B0"), "rank 0: 0B0 is missing");
  EXPECT_EQ(fault_of("0F1,0B1,0F2,0B2,0W0"), "rank 0: 0W0 stands before its input gradient");
  EXPECT_EQ(fault_of("0F1,0B1"), "the lowest micro-batch is 1");
  EXPECT_EQ(fault_of("0F0,\"0B0"), "line 1: a quote is never closed");
  EXPECT_EQ(fault_of("0F0@0,0B0"), "0B0 in line 1 names no copy of the model, other actions do");
  EXPECT_EQ(fault_of("0F0.1,0B0"), "0B0 in line 1 names no slice, other actions do");
}

// Lines are counted as an editor does, whatever ends them, and blank ones too.
TEST(Csv, FaultsNameTheirLine) {
  EXPECT_EQ(fault_of("0F0,0B0\r\n\r\n1F0,oops"), "line 3: \"oops\" is no action");
  EXPECT_EQ(fault_of("0F0,0B0\n\n1F0,oops"), "line 3: \"oops\" is no action");
  EXPECT_EQ(fault_of("0F0,0B0\r\r1F0,oops"), "line 3: \"oops\" is no action");
}

TEST(Csv, OverlappedUnitsAreAForwardAndABackward) {
  for (const char* unit : {"(0B0;0F1)OVERLAP_F_B",
                           "(0F1;0W0)OVERLAP_F_B",
                           "(0F1;0B0;0B1)OVERLAP_F_B",
                           "(0F1)OVERLAP_F_B",
                           "(0F1;0B0)",
                           "()OVERLAP_F_B",
                           "("}) {
    EXPECT_EQ(fault_of("0F0," + std::string(unit) + ",0B1"),
              "line 1: \"" + std::string(unit) + "\" is no overlapped unit");
  }
}

TEST(Csv, PlacementsThatAreUnknownNameStageAndRank) {
  const Diagnostic fault = fault_in("1F0,1B0\n0F0,0B0\n");
  EXPECT_EQ(fault.message,
            "stage 1 is on rank 0 (1F0 in line 1), linear placement has it on rank 1");
  EXPECT_NE(fault.hint.find("(V)"), std::string::npos) << fault.hint;
  // Nearer to a V than to a loop: only stages 4 and 5 are elsewhere.
  EXPECT_EQ(fault_of("0F0,3F0,5F0,0B0,3B0,5B0\n1F0,2F0,4F0,1B0,2B0,4B0\n"),
            "stage 5 is on rank 0 (5F0 in line 1), V placement has it on rank 1");
}

// A typing error in a number would ask for sizes that nobody has.
TEST(Csv, SizesTheListsCannotHold) {
  const Diagnostic fault = fault_in("0F0,0F1,0B0,0B11");
  EXPECT_NE(fault.message.find("cannot hold"), std::string::npos) << fault.message;
  EXPECT_NE(fault.hint.find("0B11 in line 1"), std::string::npos) << fault.hint;
  EXPECT_NE(fault_of("0F2147483646,0B0").find("cannot hold"), std::string::npos);
  EXPECT_NE(fault_of("2147483647F2147483647,0B0").find("cannot hold"), std::string::npos);
  EXPECT_NE(fault_of("0F0.32767,0B0.0").find("cannot hold"), std::string::npos);
  EXPECT_EQ(fault_of("0F0.32768"), "line 1: \"0F0.32768\" is no action");
}

// Every fault at once, but never pages of them; nothing reaches the terminal that it would obey.
TEST(Csv, ManyFaultsAndBytes) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "0X" + std::to_string(i) + ",";
  }
  const Expected<Schedule> read = parse_schedule_csv(text);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().list.size(), 21U);
  EXPECT_EQ(read.error().list.back().message, "and 980 more");
  EXPECT_EQ(fault_of(std::string_view("0F\x1b[31m\0\xff", 9)),
            "line 1: \"0F\\x1b[31m\\x00\\xff\" is no action");
}

}  // namespace
}  // namespace foretrain
