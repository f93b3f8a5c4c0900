#pragma once

#include "tests/support/random_program.h"

#include "foretrain/program.h"

#include <algorithm>
#include <cstdint>
#include <vector>

/// Links for a random program: one out of every instance, as wide as its template's, and a few that
/// many use. Most replicas of a template have equal links, some groups differ.
namespace foretrain {

class RandomLinks {
 public:
  RandomLinks(std::uint64_t seed, Program& program) : draw_(seed), program_(program) {}

  void add() {
    const std::vector<double> widths = {60, 90, 120, 240};
    std::vector<double> of_template;
    for (std::size_t t = 0; t < program_.templates.size(); ++t) {
      of_template.push_back(widths[draw_.below(4)]);
    }
    for (const Instance& instance : program_.instances) {
      add_link("out", of_template[instance.template_index]);
    }
    const std::int32_t shared = 1 + draw_.below(3);
    first_shared_ = static_cast<std::int32_t>(program_.links.size());
    for (std::int32_t link = 0; link < shared; ++link) {
      add_link("shared", 240);
    }
    program_.group_paths.resize(program_.groups.size());
    for (std::size_t kind = 0; kind < program_.groups.size(); ++kind) {
      const std::int32_t weight = 1 + draw_.below(3);
      const bool free = draw_.one_in(4);
      for (const std::vector<std::int32_t>& members : program_.groups[kind]) {
        program_.group_paths[kind].push_back(free ? SharedPath{} : group_path(members, weight));
      }
    }
    const bool climbs = draw_.one_in(2);
    for (std::size_t i = 0; i < program_.instances.size(); ++i) {
      Instance& instance = program_.instances[i];
      for (SharedPath& path : instance.paths) {
        path.uses = {{static_cast<std::int32_t>(i), 1.0}};
        if (climbs) {
          path.uses.push_back({first_shared_ + instance.rank % shared, 1.0});
        }
        limit(path);
      }
    }
  }

 private:
  void add_link(const char* name, double capacity) {
    program_.links.push_back({name + std::to_string(program_.links.size()), capacity, 1});
  }

  SharedPath group_path(const std::vector<std::int32_t>& members, std::int32_t weight) {
    SharedPath path;
    for (const std::int32_t member : members) {
      path.uses.push_back({member, weight * (draw_.one_in(200) ? 0.5 : 1.0)});
    }
    limit(path);
    return path;
  }

  void limit(SharedPath& path) {
    path.limit = 1e30;
    for (const LinkUse& use : path.uses) {
      path.limit = std::min(path.limit, program_.links[use.link].capacity / use.weight);
    }
  }

  Draw draw_;
  Program& program_;
  std::int32_t first_shared_ = 0;
};

inline Program random_program_with_links(std::uint64_t seed,
                                         const RandomProgramOptions& options = {}) {
  Program program = random_program(seed, options);
  RandomLinks(seed + 77'000'000, program).add();
  return program;
}

}  // namespace foretrain
