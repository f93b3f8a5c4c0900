#include "tests/tidy/source_tree.h"

#include "foretrain/schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

/// Rule: nothing lies about unused or unsaid: every source is built, every row of a table is
/// documented, every preset is written as the reader expects.
namespace foretrain::tidy {
namespace {

std::string folder_of(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/')));
}
std::string name_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

/// The CMakeLists.txt that must list a source: in its own folder, or the nearest above.
const SourceFile& list_of(const std::string& path) {
  const auto& files = source_tree();
  std::string folder = folder_of(path);
  while (true) {
    const std::string wanted = folder + "/CMakeLists.txt";
    const auto found = std::ranges::find(files, wanted, &SourceFile::path);
    if (found != files.end()) {
      return *found;
    }
    if (folder.find('/') == std::string::npos) {
      return source_file("CMakeLists.txt");
    }
    folder = folder_of(folder);
  }
}

TEST(Tree, EverySourceIsBuilt) {
  for (const SourceFile& file : source_tree()) {
    if (file.path.ends_with(".cpp")) {
      const SourceFile& list = list_of(file.path);
      EXPECT_NE(list.text.find(name_of(file.path)), std::string::npos)
          << file.path << " is in no target: list it in " << list.path << " or delete it";
    }
  }
}

TEST(Tree, EveryPrivateHeaderIsIncluded) {
  for (const SourceFile& header : source_tree()) {
    if (!header.is_header()) {
      continue;
    }
    const std::string target = header.is_under("include")
                                   ? header.path.substr(std::string("include/").size())
                                   : header.path;
    const auto includes = [&](const SourceFile& file) {
      return file.path != header.path &&
             file.text.find("#include \"" + target + "\"") != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::any_of(source_tree(), includes))
        << header.path << " is included by nobody";
  }
}

/// Whether a document holds a name between backticks or as a word of its own.
bool documents(const SourceFile& document, std::string_view name) {
  return document.text.find("`" + std::string(name) + "`") != std::string::npos;
}

TEST(Tree, EveryScheduleIsDocumented) {
  for (const ScheduleEntry& entry : schedule_table()) {
    EXPECT_TRUE(documents(source_file("README.md"), entry.name) ||
                documents(source_file("MODEL.md"), entry.name))
        << "schedule `" << entry.name << "`: name it, in backticks, in README.md or MODEL.md";
    EXPECT_FALSE(entry.summary.empty()) << entry.name;
  }
}

TEST(Tree, EveryFolderOfSourcesHasItsTests) {
  std::set<std::string> tested;
  std::set<std::string> folders;
  for (const SourceFile& file : source_tree()) {
    if (file.is_under("sim") && file.path.ends_with(".cpp") && folder_of(file.path) != "sim") {
      folders.insert(file.path.substr(4, file.path.find('/', 4) - 4));
    }
    if (file.is_under("tests") && file.path.ends_with("_test.cpp")) {
      tested.insert(file.path.substr(6, file.path.find('/', 6) - 6));
    }
  }
  // A program and its timeline show in what the engine makes of them.
  folders.erase("program");
  folders.erase("timeline");
  for (const std::string& folder : folders) {
    EXPECT_TRUE(tested.contains(folder)) << "sim/" << folder << " has no tests/" << folder;
  }
}

TEST(Tree, EveryTypeIsDefinedOnce) {
  // Two types of one name break the one-definition rule: the linker keeps one of their inline
  // functions for both.
  std::map<std::string, std::string> places;
  for (const SourceFile& file : source_tree()) {
    for (const TypeDefinition& type : types_in(file.code)) {
      const std::string place = file.path + ":" + std::to_string(type.line);
      const auto [first, is_new] = places.emplace(type.name, place);
      EXPECT_TRUE(is_new) << place << ": " << type.name << " is defined in " << first->second
                          << " as well: put one in an unnamed namespace or give it another name";
    }
  }
}

TEST(Tree, EveryConstantOfAPresetHasItsSource) {
  for (const SourceFile& file : source_tree()) {
    if (file.is_under("topologies") && file.path.ends_with(".json")) {
      EXPECT_NE(file.text.find("\"source"), std::string::npos)
          << file.path << ": say where its numbers come from";
    }
  }
}

}  // namespace
}  // namespace foretrain::tidy
