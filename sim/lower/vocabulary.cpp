#include "sim/lower/vocabulary.h"

namespace foretrain {

Vocabulary::Vocabulary(Program& program) : program_(program) {
  program.streams = {
      {"compute", StreamRole::kPrimary, 0},
      {"tp", StreamRole::kCollective, kTensorAccount},
      {"dp", StreamRole::kCollective, kDataAccount},
      {"pp send next", StreamRole::kPointToPoint, 0},
      {"pp send previous", StreamRole::kPointToPoint, 0},
      {"pp receive previous", StreamRole::kPointToPoint, 0},
      {"pp receive next", StreamRole::kPointToPoint, 0},
  };
  program.group_kinds = {"tp", "dp", "norm", "embedding", "pp"};
  program.busy_accounts = {"compute", "recompute", "optimizer"};
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

}  // namespace foretrain
