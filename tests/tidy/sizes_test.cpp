#include "tests/tidy/source_tree.h"

#include <string_view>

#include <gtest/gtest.h>

/// Rule: nothing grows past what a reader takes in: lines, functions, headers, files.
namespace foretrain::tidy {
namespace {

constexpr int kColumns = 100;
constexpr int kFileLines = 400;
constexpr int kHeaderLines = 250;
constexpr int kFunctionLines = 70;

int columns(std::string_view line) {
  int count = 0;
  for (const char c : line) {
    count += (static_cast<unsigned char>(c) & 0xC0U) == 0x80U ? 0 : 1;  // UTF-8 continuation
  }
  return count;
}

TEST(Sizes, LinesFitAHundredColumns) {
  for (const SourceFile& file : source_tree()) {
    const bool code = file.is_cpp() || file.path.ends_with(".cmake") ||
                      file.path.ends_with("CMakeLists.txt") || file.path.ends_with(".sh");
    for (std::size_t i = 0; code && i < file.lines.size(); ++i) {
      EXPECT_LE(columns(file.lines[i]), kColumns) << file.path << ":" << i + 1;
    }
  }
}

TEST(Sizes, LinesEndWithoutSpaces) {
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; file.is_cpp() && i < file.lines.size(); ++i) {
      EXPECT_FALSE(file.lines[i].ends_with(' ') || file.lines[i].find('\t') != std::string::npos)
          << file.path << ":" << i + 1;
    }
  }
}

TEST(Sizes, FilesAreShort) {
  for (const SourceFile& file : source_tree()) {
    if (file.is_cpp()) {
      const bool public_header = file.is_under("include");
      EXPECT_LE(static_cast<int>(file.lines.size()), public_header ? kHeaderLines : kFileLines)
          << file.path << " is too long: split it by purpose";
    }
  }
}

TEST(Sizes, FunctionsAreShort) {
  for (const SourceFile& file : source_tree()) {
    for (const FunctionExtent& function : functions_in(file.code)) {
      EXPECT_LE(function.lines, kFunctionLines)
          << file.path << ":" << function.first_line << ": the function that begins here is too "
          << "long: name its parts";
    }
  }
}

TEST(Sizes, ArchitectureAndContributingStayShort) {
  EXPECT_LE(source_file("ARCHITECTURE.md").lines.size(), 250U);
  EXPECT_LE(source_file("CONTRIBUTING.md").lines.size(), 60U);
}

}  // namespace
}  // namespace foretrain::tidy
