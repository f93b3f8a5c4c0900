#include "tests/tidy/source_tree.h"

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

/// Rule: what the project decided never to write is not written; each message says what to use.
namespace foretrain::tidy {
namespace {

enum class Where { kEverywhere, kOutsideTools, kOutsideTests, kLibrary };

struct BannedWord {
  std::string_view word;
  std::string_view instead;
  Where where = Where::kEverywhere;
};

constexpr BannedWord kBannedInCode[] = {
    {"std::cout", "return the text, only tools/ prints", Where::kOutsideTools},
    {"std::cerr", "return Diagnostics, only tools/ logs", Where::kOutsideTools},
    {"printf", "return the text, only tools/ prints", Where::kLibrary},
    {"puts", "return the text, only tools/ prints", Where::kLibrary},
    {"exit", "return an outcome; only tools/ ends the process", Where::kOutsideTools},
    {"using namespace", "using std::name, or the whole name"},
    {"rand", "sim/base/random.h, keyed by seed and purpose"},
    {"srand", "sim/base/random.h, keyed by seed and purpose"},
    {"random_device", "sim/base/random.h: runs must repeat"},
    {"mt19937", "sim/base/random.h: the library's distributions differ", Where::kOutsideTests},
    {"system_clock", "nothing: results do not depend on the date"},
    {"float", "integers, or double in reports"},
    {"unordered_map", "std::map or a sorted vector: order shows in results"},
    {"unordered_set", "std::set or a sorted vector: order shows in results"},
    {"std::endl", "'\\n'"},
    {"std::regex", "a few lines by hand: it is slow to compile and to run", Where::kOutsideTests},
    {"throw", "Expected<T> with every fault, or FORETRAIN_CHECK for a bug", Where::kLibrary},
    {"assert", "FORETRAIN_CHECK, which stays on in release", Where::kOutsideTests},
    {"dynamic_cast", "std::variant or a table of functions"},
    {"std::views", "a loop: clang 14 rejects it"},
    {"std::format", "sim/base/format.h: the compilers here lack it"},
    {"source_location", "FORETRAIN_CHECK: clang 14 lacks it"},
    {"ffast-math", "nothing: sums must not depend on the compiler"},
};

constexpr std::string_view kVagueSuffixes[] = {
    "Manager", "Handler", "Helper", "Util", "Utils", "Impl", "Data", "Info", "Base"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Where `word` stands alone in `line`, neither part of a longer name nor a member's name.
bool stands_alone(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    const bool before = at > 0 && (is_word(line[at - 1]) || line[at - 1] == '.');
    const std::size_t end = at + word.size();
    const bool after = end < line.size() && is_word(line[end]);
    if (!before && !after) {
      return true;
    }
  }
  return false;
}

bool applies(const SourceFile& file, Where where) {
  switch (where) {
    case Where::kEverywhere:
      return true;
    case Where::kOutsideTools:
      return !file.is_under("tools");
    case Where::kOutsideTests:
      return !file.is_under("tests");
    case Where::kLibrary:
      return !file.is_under("tests") && !file.is_under("tools") && file.path != "sim/base/check.h";
  }
  return true;
}

TEST(Words, BannedInCode) {
  for (const SourceFile& file : source_tree()) {
    if (!file.is_cpp()) {
      continue;
    }
    for (std::size_t i = 0; i < file.code_lines.size(); ++i) {
      for (const BannedWord& banned : kBannedInCode) {
        EXPECT_FALSE(applies(file, banned.where) && stands_alone(file.code_lines[i], banned.word))
            << file.path << ":" << i + 1 << ": " << banned.word << " is banned, use "
            << banned.instead;
      }
    }
  }
}

/// Words are joined here so that this file does not contain them.
std::vector<std::string> banned_in_text() {
  const std::string root = "/";
  return {std::string("TO") + "DO",
          std::string("FIX") + "ME",
          std::string("XX") + "X",
          root + "work/",
          root + "tmp/bash",
          root + "root/",
          root + "home/",
          std::string("<<<<") + "<<<",
          std::string(">>>>") + ">>>",
          std::string("\r")};
}

TEST(Words, BannedInAnyText) {
  const std::vector<std::string> banned = banned_in_text();
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& word : banned) {
        EXPECT_EQ(file.lines[i].find(word), std::string::npos)
            << file.path << ":" << i + 1 << ": \"" << word << "\" is banned: say what is so now, "
            << "with paths relative to the repository";
      }
    }
  }
}

TEST(Words, TypeNamesSayWhatTheyAre) {
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; i < file.code_lines.size(); ++i) {
      const std::string& line = file.code_lines[i];
      for (const std::string_view keyword : {"struct ", "class "}) {
        const std::size_t at = line.find(keyword);
        if (at == std::string::npos || (at > 0 && is_word(line[at - 1]))) {
          continue;
        }
        std::size_t end = at + keyword.size();
        while (end < line.size() && is_word(line[end])) {
          ++end;
        }
        const std::string name = line.substr(at + keyword.size(), end - at - keyword.size());
        for (const std::string_view suffix : kVagueSuffixes) {
          EXPECT_FALSE(name.ends_with(suffix))
              << file.path << ":" << i + 1 << ": " << name << ": \"" << suffix
              << "\" says nothing, use a noun of the field";
        }
      }
    }
  }
}

TEST(Words, HeadersBeginWithPragmaOnce) {
  for (const SourceFile& file : source_tree()) {
    if (file.is_header()) {
      EXPECT_TRUE(file.text.starts_with("#pragma once\n")) << file.path;
    }
  }
}

}  // namespace
}  // namespace foretrain::tidy
