#include "tools/commands.h"
#include "tools/output.h"

#include "foretrain/mesh.h"
#include "sim/base/format.h"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownGroups = 4;
constexpr std::size_t kShownMembers = 8;
constexpr std::int64_t kShownCoordinates = 16;

/// The contract's five, and the experts' other two where experts are folded at all.
std::vector<std::string> dimensions(const MeshSize& size) {
  std::vector<std::string> names = {"tp", "cp", "dp", "pp", "ep"};
  if (size.ep > 1 || size.etp > 1) {
    names.insert(names.end(), {"etp", "edp"});
  }
  return names;
}

Json mesh_json(const DeviceMesh& mesh) {
  Json groups = Json::object();
  Json inside = Json::object();
  for (const std::string& name : dimensions(mesh.size())) {
    Json list = Json::array();
    for (const ProcessGroup& group : mesh.groups(name)) {
      list.push_back(group.ranks);
    }
    groups[name] = std::move(list);
    inside[name] = mesh.inside_node(name);
  }
  Json coordinates = Json::array();
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates at = mesh.coordinates(rank);
    coordinates.push_back(
        {{"rank", rank}, {"tp", at.tp}, {"cp", at.cp}, {"dp", at.dp}, {"pp", at.pp}});
  }
  return {{"ranks", mesh.ranks()},
          {"order", mesh.size().order},
          {"groups", std::move(groups)},
          {"inside_node", std::move(inside)},
          {"coordinates", std::move(coordinates)}};
}

std::string group_text(const ProcessGroup& group) {
  std::string text = "[";
  for (std::size_t at = 0; at < group.ranks.size(); ++at) {
    if (at == kShownMembers - 1 && group.ranks.size() > kShownMembers) {
      text += " ... " + std::to_string(group.ranks.back());
      break;
    }
    text += (at > 0 ? " " : "") + std::to_string(group.ranks[at]);
  }
  return text + "]";
}

std::string dimension_line(const DeviceMesh& mesh, const std::string& name) {
  const std::vector<ProcessGroup> groups = mesh.groups(name);
  const bool alone = groups.front().ranks.size() == 1;
  std::string line = "  " + pad(name, 5);
  line += pad(with_commas(static_cast<std::int64_t>(groups.front().ranks.size())), 7, true);
  line += pad(with_commas(static_cast<std::int64_t>(groups.size())), 9, true) + "  ";
  line += pad(alone ? "alone" : mesh.inside_node(name) ? "inside a node" : "across nodes", 15);
  for (std::size_t at = 0; at < std::min(groups.size(), kShownGroups); ++at) {
    line += (at > 0 ? " " : "") + group_text(groups[at]);
  }
  return line + (groups.size() > kShownGroups ? " ..." : "") + "\n";
}

std::string mesh_text(const DeviceMesh& mesh) {
  const MeshSize& size = mesh.size();
  const std::int64_t nodes = (mesh.ranks() + size.gpus_per_node - 1) / size.gpus_per_node;
  std::string text = with_commas(mesh.ranks()) + " " + plural("rank", mesh.ranks()) + ", " +
                     with_commas(nodes) + " " + plural("node", nodes) + " of " +
                     with_commas(size.gpus_per_node) + " " + plural("GPU", size.gpus_per_node) +
                     ", order " + size.order +
                     " (innermost first)\n\n  group   size   groups  where          ranks\n";
  for (const std::string& name : dimensions(size)) {
    text += dimension_line(mesh, name);
  }
  text += "\n  rank     tp   cp   dp   pp\n";
  const std::int64_t shown = std::min(mesh.ranks(), kShownCoordinates);
  for (std::int64_t rank = 0; rank < shown; ++rank) {
    const Coordinates at = mesh.coordinates(rank);
    text += pad(std::to_string(rank), 6, true) + "  ";
    for (const std::int64_t coordinate : {at.tp, at.cp, at.dp, at.pp}) {
      text += pad(std::to_string(coordinate), 5, true);
    }
    text += "\n";
  }
  if (shown < mesh.ranks()) {
    text += "  ... " + with_commas(mesh.ranks() - shown) + " more (--json lists all)\n";
  }
  return text;
}

}  // namespace

int cmd_mesh(int argc, char** argv) {
  CLI::App app("Ranks, coordinates and communication groups of a parallel layout.", "mesh");
  MeshSize size;
  std::string json_target;
  app.add_option("--tp", size.tp, "tensor-parallel degree")->check(whole_number());
  app.add_option("--cp", size.cp, "context-parallel degree")->check(whole_number());
  app.add_option("--dp", size.dp, "data-parallel degree")->check(whole_number());
  app.add_option("--pp", size.pp, "pipeline-parallel degree")->check(whole_number());
  app.add_option("--ep", size.ep, "expert-parallel degree (reuses ranks of tp x cp x dp)")
      ->check(whole_number());
  app.add_option("--etp", size.etp, "tensor-parallel degree of the experts")->check(whole_number());
  app.add_option("--order", size.order, "dimensions, innermost first")
      ->capture_default_str()
      ->check(not_empty());
  app.add_option("--gpus-per-node", size.gpus_per_node, "GPUs in a node")
      ->capture_default_str()
      ->check(whole_number());
  add_json_option(app, json_target);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  const Expected<DeviceMesh> mesh = DeviceMesh::build(size);
  if (!mesh) {
    return report_faults(mesh.error(), "foretrain mesh", json_target);
  }
  return json_target.empty() ? write_output("-", mesh_text(*mesh))
                             : write_json(json_target, mesh_json(*mesh));
}

}  // namespace foretrain
