#include "sim/lower/vocabulary.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

/// All of a task that stands alone in its block.
auto content(const Task& task) {
  return std::tie(task.kind,
                  task.stream,
                  task.group_kind,
                  task.peer_slot,
                  task.label,
                  task.account,
                  task.bytes,
                  task.flops,
                  task.launch_offset,
                  task.work);
}

}  // namespace

Vocabulary::Vocabulary(Program& program) : program_(program) {
  program.streams = {
      {"compute", StreamRole::kPrimary, 0},
      {"tp", StreamRole::kCollective, kTensorAccount},
      {"dp", StreamRole::kCollective, kDataAccount},
      {"pp send next", StreamRole::kPointToPoint, 0},
      {"pp send previous", StreamRole::kPointToPoint, 0},
      {"pp receive previous", StreamRole::kPointToPoint, 0},
      {"pp receive next", StreamRole::kPointToPoint, 0},
      {"cp", StreamRole::kCollective, kContextAccount},
      {"ep", StreamRole::kCollective, kExpertAccount},
  };
  program.group_kinds = {"tp",
                         "dp",
                         "norm",
                         "embedding",
                         "pp",
                         "cp",
                         "ep",
                         "etp",
                         "dp replicas",
                         "expert dp",
                         "expert dp replicas"};
  program.busy_accounts = {"compute", "recompute", "optimizer", "host"};
  program.exposed_accounts = {"tp", "cp", "ep", "dp"};
  program.groups.resize(program.group_kinds.size());
}

std::int32_t Vocabulary::label(std::string_view text) {
  const auto found = labels_.find(text);
  if (found != labels_.end()) {
    return found->second;
  }
  const auto index = static_cast<std::int32_t>(program_.labels.size());
  program_.labels.emplace_back(text);
  labels_.emplace(std::string(text), index);
  return index;
}

std::int32_t Vocabulary::single(const Task& task, const char* name) {
  // The latest are the likeliest to come again.
  const auto found = std::find_if(singles_.rbegin(), singles_.rend(), [&](std::int32_t index) {
    const Block& block = program_.blocks[static_cast<std::size_t>(index)];
    return content(block.tasks.front()) == content(task) && block.name == name;
  });
  if (found != singles_.rend()) {
    return *found;
  }
  const auto index = static_cast<std::int32_t>(program_.blocks.size());
  Block block;
  block.name = name;
  block.tasks.push_back(task);
  program_.blocks.push_back(std::move(block));
  singles_.push_back(index);
  return index;
}

}  // namespace foretrain
