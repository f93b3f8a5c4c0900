#include "tests/tidy/source_tree.h"

#include <string>

#include <gtest/gtest.h>

/// Rule: the reading of C++ the other tests rest on sees code, and only code.
namespace foretrain::tidy {
namespace {

TEST(SourceText, BlanksCommentsAndLiteralsButKeepsLines) {
  EXPECT_EQ(without_comments_and_literals("a; // rand()\nb;"), "a;          \nb;");
  EXPECT_EQ(without_comments_and_literals("x(\"a\\\"b\", 'c')"), "x(      ,    )");
  EXPECT_EQ(without_comments_and_literals("/* {\n */c"), "    \n   c");
  EXPECT_EQ(without_comments_and_literals("n = 1'000;"), "n = 1'000;");
  EXPECT_EQ(without_comments_and_literals("r = R\"x({\")x\";"), "r =          ;");
  EXPECT_EQ(without_comments_and_literals("#include \"a/b.h\"\n"), "#include \"a/b.h\"\n");
}

TEST(SourceText, MeasuresFunctionsAndNotTables) {
  const std::string code =
      "#include <map>\n"
      "namespace a {\n"
      "struct S {\n"
      "  int f() const {\n"
      "    return 1;\n"
      "  }\n"
      "};\n"
      "constexpr int kTable[] = {\n 1,\n 2};\n"
      "int g(int x) {\n"
      "  if (x) {\n"
      "    return 2;\n"
      "  }\n"
      "  return 3;\n"
      "}\n"
      "}\n";
  const auto functions = functions_in(code);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].first_line, 4);
  EXPECT_EQ(functions[0].lines, 3);
  EXPECT_EQ(functions[1].first_line, 11);
  EXPECT_EQ(functions[1].lines, 6);
}

TEST(SourceText, FindsTheTypesOtherFilesCanName) {
  const std::string code =
      "#pragma once\n"
      "namespace a::b {\n"
      "struct Declared;\n"
      "struct First {\n"
      "  struct Nested {};\n"
      "};\n"
      "template <typename T>\n"
      "class Second final : First {};\n"
      "enum class Third : int { kOne };\n"
      "namespace {\n"
      "struct Hidden {};\n"
      "}\n"
      "Third f(struct First& x) {\n"
      "  struct Local {};\n"
      "  const First list[] = {{}, {}};\n"
      "}\n"
      "}\n"
      "union Fourth {};\n";
  const auto types = types_in(code);
  ASSERT_EQ(types.size(), 4U);
  EXPECT_EQ(types[0].name, "a::b::First");
  EXPECT_EQ(types[0].line, 4);
  EXPECT_EQ(types[1].name, "a::b::Second");
  EXPECT_EQ(types[2].name, "a::b::Third");
  EXPECT_EQ(types[3].name, "Fourth");
}

TEST(SourceText, TheTreeIsRead) {
  EXPECT_FALSE(source_file("sim/base/format.cpp").code.empty());
  EXPECT_FALSE(source_file("README.md").lines.empty());
}

}  // namespace
}  // namespace foretrain::tidy
