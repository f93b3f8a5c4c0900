#include "sim/base/edit_distance.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

TEST(EditDistance, CountsInsertionsSubstitutionsAndSwaps) {
  EXPECT_EQ(edit_distance("parallelism", "paralelism"), 1);
  EXPECT_EQ(edit_distance("tp", "pt"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("ZERO1", "zero1"), 0);
}

TEST(EditDistance, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names = {"gpipe", "1f1b", "interleaved"};
  EXPECT_EQ(did_you_mean("interleavd", names), "did you mean \"interleaved\"?");
  EXPECT_EQ(did_you_mean("inter", names), "did you mean \"interleaved\"?");
  EXPECT_EQ(did_you_mean("zigzag", names), "");
}

}  // namespace
}  // namespace foretrain
