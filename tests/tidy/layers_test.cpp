#include "tests/tidy/source_tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

/// Rule: a part includes its own layer's neighbours only where the table says so, and lower layers;
/// third-party headers stay where they belong. ARCHITECTURE.md shows the same table.
namespace foretrain::tidy {
namespace {

struct Part {
  int layer;
  std::set<std::string> sees;       ///< parts of sim/ and include/
  std::set<std::string> libraries;  ///< third-party headers, by first path component
  std::set<std::string> headers{};  ///< single public headers of a part it does not see
};

const std::map<std::string, Part>& parts() {
  static const std::set<std::string> kLanguages = {
      "base", "mesh", "schedule", "flow", "discover", "program", "timeline", "scenario"};
  static const auto with = [](std::set<std::string> set, const std::set<std::string>& more) {
    set.insert(more.begin(), more.end());
    return set;
  };
  static const std::map<std::string, Part> kParts = {
      {"base", {0, {}, {}}},
      {"mesh", {1, {"base"}, {}}},
      {"schedule", {1, {"base"}, {}}},
      {"flow", {1, {"base"}, {}}},
      {"discover", {1, {"base"}, {"expat.h"}}},
      {"program", {2, {"base", "flow"}, {}}},
      {"timeline", {1, {"base"}, {}}},
      {"scenario", {2, {"base", "mesh", "schedule", "discover"}, {"nlohmann"}}},
      {"cluster", {3, kLanguages, {"boost"}}},
      // An operator names its collective by kind and mesh dimension.
      {"model", {3, kLanguages, {"boost"}, {"foretrain/collective.h"}}},
      {"engine", {3, {"base", "flow", "program", "timeline"}, {}}},
      {"report", {3, {"base", "flow", "program", "timeline"}, {"nlohmann", "zlib.h"}}},
      {"cost", {4, with(kLanguages, {"cluster", "model"}), {}}},
      {"lower", {5, with(kLanguages, {"cluster", "model", "cost"}), {}}},
      {"simulate",
       {6, with(kLanguages, {"cluster", "model", "engine", "report", "cost", "lower"}), {}}},
      {"estimate", {4, with(kLanguages, {"model"}), {}}},
      {"search", {7, with(kLanguages, {"model", "engine", "report", "estimate", "simulate"}), {}}},
      {"plan",
       {8, with(kLanguages, {"model", "engine", "report", "estimate", "simulate", "search"}), {}}},
      {"validate",
       {8, with(kLanguages, {"model", "engine", "report", "estimate", "simulate", "search"}), {}}},
  };
  return kParts;
}

/// Which part a public header belongs to.
const std::map<std::string, std::string>& public_headers() {
  static const std::map<std::string, std::string> kOwners = {
      {"units", "base"},
      {"diagnostic", "base"},
      {"mesh", "mesh"},
      {"flow", "flow"},
      {"discovered_fabric", "discover"},
      {"discover", "discover"},
      {"node_description", "discover"},
      {"imports", "scenario"},
      {"schedule", "schedule"},
      {"program", "program"},
      {"timeline", "timeline"},
      {"scenario", "scenario"},
      {"quantity", "scenario"},
      {"flow_list", "scenario"},
      {"model_config", "scenario"},
      {"cost_spec", "scenario"},
      {"topology_spec", "scenario"},
      {"topology", "cluster"},
      {"flow_run", "cluster"},
      {"collective", "cluster"},
      {"model", "model"},
      {"engine", "engine"},
      {"report", "report"},
      {"cost", "cost"},
      {"lower", "lower"},
      {"simulate", "simulate"},
      {"estimate", "estimate"},
      {"compare", "search"},
      {"search", "search"},
      {"plan", "plan"},
      {"validate", "validate"},
  };
  return kOwners;
}

std::string stem(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::string(name.substr(0, name.find('.')));
}

/// The part of a path as written in an #include, or of a file; "" for what has none.
std::string part_of(std::string_view path) {
  if (path.starts_with("include/")) {
    path.remove_prefix(std::string_view("include/").size());
  }
  if (path.starts_with("foretrain/")) {
    const auto found = public_headers().find(stem(path));
    return found == public_headers().end() ? "" : found->second;
  }
  if (path.starts_with("sim/")) {
    path.remove_prefix(4);
    const std::size_t slash = path.find('/');
    return slash == std::string_view::npos ? stem(path) : std::string(path.substr(0, slash));
  }
  return "";
}

struct Include {
  std::string target;
  bool angled = false;
};

std::optional<Include> parse_include(std::string_view line) {
  if (!line.starts_with("#include ") || line.size() < 12) {
    return std::nullopt;
  }
  const bool angled = line[9] == '<';
  const std::size_t end = line.find(angled ? '>' : '"', 10);
  return Include{std::string(line.substr(10, end - 10)), angled};
}

template <typename Visit>
void each_include(const SourceFile& file, const Visit& visit) {
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (const auto include = parse_include(file.lines[i])) {
      visit(*include, file.path + ":" + std::to_string(i + 1) + ": ");
    }
  }
}

TEST(Layers, EveryFolderAndPublicHeaderIsInTheTable) {
  for (const SourceFile& file : source_tree()) {
    if (file.is_cpp() && (file.is_under("sim") || file.is_under("include"))) {
      EXPECT_TRUE(parts().contains(part_of(file.path)))
          << file.path << " belongs to no part: add it to tests/tidy/layers_test.cpp";
    }
  }
}

TEST(Layers, APartSeesOnlyLowerOnes) {
  for (const auto& [name, part] : parts()) {
    for (const std::string& other : part.sees) {
      EXPECT_LT(parts().at(other).layer, part.layer) << name << " sees " << other;
    }
  }
}

TEST(Layers, PartsIncludeOnlyWhatTheyMaySee) {
  for (const SourceFile& file : source_tree()) {
    const auto self = parts().find(part_of(file.path));
    if (!file.is_cpp() || self == parts().end()) {
      continue;
    }
    each_include(file, [&](const Include& include, const std::string& where) {
      if (include.angled) {
        return;
      }
      const std::string part = part_of(include.target);
      const bool allowed = part == self->first || self->second.sees.contains(part) ||
                           self->second.headers.contains(include.target);
      EXPECT_TRUE(allowed) << where << self->first << " may not include " << include.target
                           << " (see the layer table in ARCHITECTURE.md)";
    });
  }
}

TEST(Layers, ToolsSeeThePublicHeadersAndFormatting) {
  for (const SourceFile& file : source_tree()) {
    if (!file.is_cpp() || !file.is_under("tools")) {
      continue;
    }
    each_include(file, [&](const Include& include, const std::string& where) {
      const bool allowed = include.angled || include.target.starts_with("foretrain/") ||
                           include.target.starts_with("tools/") ||
                           include.target.starts_with("sim/base/");
      EXPECT_TRUE(allowed) << where << "tools may not include " << include.target
                           << ": what a command needs belongs in include/foretrain/";
    });
  }
}

TEST(Layers, PublicHeadersIncludePublicHeadersOnly) {
  for (const SourceFile& file : source_tree()) {
    if (!file.is_under("include")) {
      continue;
    }
    each_include(file, [&](const Include& include, const std::string& where) {
      EXPECT_TRUE(include.angled || include.target.starts_with("foretrain/"))
          << where << include.target << " is private: a public header may not include it";
    });
  }
}

/// Third-party headers as the standard library has none: a folder or a suffix in the name.
bool is_third_party(const std::string& target) {
  const bool system = target.starts_with("sys/") || target == "unistd.h" || target == "fcntl.h";
  return !system && target.find_first_of("/.") != std::string::npos;
}

TEST(Layers, ThirdPartyHeadersStayWhereTheyBelong) {
  static const std::set<std::string> kTools = {"CLI", "spdlog", "nlohmann"};
  for (const SourceFile& file : source_tree()) {
    if (!file.is_cpp() || file.is_under("tests")) {
      continue;
    }
    each_include(file, [&](const Include& include, const std::string& where) {
      if (!include.angled || !is_third_party(include.target)) {
        return;
      }
      const std::string library = include.target.substr(0, include.target.find('/'));
      const auto self = parts().find(part_of(file.path));
      const bool allowed = library == "tl" ||
                           (file.is_under("tools") && kTools.contains(library)) ||
                           (file.is_under("sim") && self != parts().end() &&
                            self->second.libraries.contains(library));
      EXPECT_TRUE(allowed) << where << "<" << include.target << "> is not used here; "
                           << "which part may use which library stands in layers_test.cpp";
    });
  }
}

TEST(Layers, HeavyHeadersStayOutOfHeaders) {
  std::map<std::string, int> graph_headers;
  for (const SourceFile& file : source_tree()) {
    if (!file.is_header() || file.is_under("tests")) {
      continue;
    }
    bool graph = false;
    each_include(file, [&](const Include& include, const std::string& where) {
      EXPECT_FALSE(include.target == "nlohmann/json.hpp" && file.is_under("include"))
          << where << "parse in a .cpp file";
      graph = graph || include.target.starts_with("boost/");
    });
    if (graph) {
      EXPECT_EQ(++graph_headers[part_of(file.path)], 1)
          << file.path << ": a part has at most one private header with graph types";
    }
  }
}

}  // namespace
}  // namespace foretrain::tidy
