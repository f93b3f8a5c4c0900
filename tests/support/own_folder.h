#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

/// A folder of the running test's own: tests of one program run side by side.
namespace foretrain::test {

inline std::string own_folder() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      testing::TempDir() + "foretrain_" + test->test_suite_name() + "_" + test->name() + "/";
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace foretrain::test
