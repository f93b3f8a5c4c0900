#include "sim/simulate/watched.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

using Instances = std::vector<std::int32_t>;

const Template& template_of(const Program& program, std::int32_t instance) {
  return program.templates[static_cast<std::size_t>(
      program.instances[static_cast<std::size_t>(instance)].template_index)];
}

std::int64_t records_of(const Program& program, const Instances& instances) {
  return std::accumulate(
      instances.begin(), instances.end(), std::int64_t{0}, [&](std::int64_t sum, std::int32_t one) {
        return sum + template_of(program, one).task_count;
      });
}

/// Of the instances that a key makes alike the one of most ranks, by key.
template <typename Key>
Instances largest_by(const Program& program, Key key) {
  std::map<std::int32_t, std::int32_t> largest;
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    const auto instance = static_cast<std::int32_t>(i);
    const auto [best, first] = largest.try_emplace(key(instance), instance);
    if (!first && program.instances[i].multiplicity >
                      program.instances[static_cast<std::size_t>(best->second)].multiplicity) {
      best->second = instance;
    }
  }
  Instances found;
  for (const auto& [of, instance] : largest) {
    found.push_back(instance);
  }
  return found;
}

/// As many as may be, the first and the last among them, evenly apart.
Instances thinned(const Program& program, const Instances& from, std::int64_t most_records) {
  Instances kept = from;
  for (std::size_t count = from.size(); count > 1 && records_of(program, kept) > most_records;) {
    --count;
    kept.clear();
    for (std::size_t i = 0; i < count; ++i) {
      kept.push_back(from[count == 1 ? 0 : i * (from.size() - 1) / (count - 1)]);
    }
  }
  return kept;
}

Instances chosen(const Program& program, std::int64_t most_records) {
  Instances all(program.instances.size());
  std::iota(all.begin(), all.end(), 0);
  if (records_of(program, all) <= most_records) {
    return all;
  }
  const Instances by_template = largest_by(program, [&](std::int32_t instance) {
    return program.instances[static_cast<std::size_t>(instance)].template_index;
  });
  if (records_of(program, by_template) <= most_records) {
    return by_template;
  }
  const Instances by_stage = largest_by(
      program, [&](std::int32_t instance) { return template_of(program, instance).stage; });
  return thinned(program, by_stage, most_records);
}

/// What makes a block of one template the like of one in another.
using BlockName = std::pair<std::string_view, int>;

std::map<std::int32_t, BlockName> names_of(const Program& program, const Template& body) {
  std::map<std::int32_t, BlockName> names;
  std::map<std::string_view, int> met;
  for (const Call& call : body.calls) {
    const std::string_view name = program.blocks[static_cast<std::size_t>(call.block)].name;
    const auto [place, first] = names.try_emplace(call.block, name, 0);
    if (first) {
      place->second.second = met[name]++;
    }
  }
  return names;
}

}  // namespace

Watched::Watched(const Program& folded, std::int64_t most_records)
    : program_(folded), instances_(chosen(folded, most_records)) {
  records_ = records_of(folded, instances_);
  std::vector<std::int32_t> seen;
  for (const std::int32_t instance : instances_) {
    seen.push_back(folded.instances[static_cast<std::size_t>(instance)].template_index);
  }
  for (std::size_t t = 0; t < folded.templates.size(); ++t) {
    const auto own = static_cast<std::int32_t>(t);
    const auto distance = [&](std::int32_t other) {
      const std::int32_t stages =
          folded.templates[static_cast<std::size_t>(other)].stage - folded.templates[t].stage;
      return std::tuple{other != own, std::abs(stages), other};
    };
    stand_ins_.push_back(
        *std::min_element(seen.begin(), seen.end(), [&](std::int32_t a, std::int32_t b) {
          return distance(a) < distance(b);
        }));
  }
}

std::vector<std::int32_t> Watched::calls_for(std::int32_t index) const {
  const Template& body = program_.templates[static_cast<std::size_t>(index)];
  const Template& told = program_.templates[static_cast<std::size_t>(template_for(index))];
  std::map<BlockName, std::int32_t> calls;
  const std::map<std::int32_t, BlockName> told_names = names_of(program_, told);
  for (std::size_t c = 0; c < told.calls.size(); ++c) {
    calls.try_emplace(told_names.at(told.calls[c].block), static_cast<std::int32_t>(c));
  }
  const std::map<std::int32_t, BlockName> names = names_of(program_, body);
  std::vector<std::int32_t> found;
  for (const Call& call : body.calls) {
    const auto place = calls.find(names.at(call.block));
    found.push_back(place == calls.end() ? -1 : place->second);
  }
  return found;
}

}  // namespace foretrain
