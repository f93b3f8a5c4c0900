#include "sim/program/faults.h"

#include <algorithm>

namespace foretrain {
namespace {

void check_path(const Program& program,
                const SharedPath& path,
                FaultList& faults,
                const FaultPlace& place) {
  if (!path.uses.empty() && !(path.limit > 0)) {
    faults.add(place, "a path without a limit above 0");
  }
  std::vector<std::int32_t> seen;
  for (const LinkUse& use : path.uses) {
    if (!faults.in_range(use.link, program.links.size(), place, "link")) {
      continue;
    }
    if (!(use.weight > 0)) {
      faults.add(place, "a link's weight is not above 0");
    }
    seen.push_back(use.link);
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
    faults.add(place, "a path names a link twice");
  }
}

}  // namespace

void find_link_faults(const Program& program, FaultList& faults) {
  for (std::size_t link = 0; link < program.links.size(); ++link) {
    if (!(program.links[link].capacity > 0) || program.links[link].multiplicity < 1) {
      faults.add({"link", link}, "capacity and multiplicity must be above 0");
    }
  }
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    for (const SharedPath& path : program.instances[i].paths) {
      check_path(program, path, faults, {"instance", i});
    }
  }
  if (!program.group_paths.empty() && program.group_paths.size() != program.groups.size()) {
    faults.add("not one list of paths per group kind");
    return;
  }
  for (std::size_t kind = 0; kind < program.group_paths.size(); ++kind) {
    const std::vector<SharedPath>& paths = program.group_paths[kind];
    if (!paths.empty() && paths.size() != program.groups[kind].size()) {
      faults.add({"group kind", kind}, "not one path per group");
    }
    for (std::size_t group = 0; group < paths.size(); ++group) {
      check_path(program, paths[group], faults, {"group kind", kind, "group", group});
    }
  }
}

}  // namespace foretrain
