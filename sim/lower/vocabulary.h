#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// The streams, group kinds, accounts and labels of a training step.
namespace foretrain {

enum StreamIndex : std::int32_t {
  kComputeStream,
  kTensorStream,
  kDataStream,
  kSendNextStream,
  kSendPreviousStream,
  kReceivePreviousStream,
  kReceiveNextStream,
  kContextStream,
  kExpertStream,
};
enum GroupKind : std::int32_t {
  kTensorGroup,
  kDataGroup,  ///< ranks a shard of the states spans: dp x cp, or a part of it
  kNormGroup,
  kEmbeddingGroup,
  kPipelineGroup,
  kContextGroup,
  kExpertGroup,
  kExpertTensorGroup,
  kReplicaGroup,     ///< holders of the same shard (hybrid sharding)
  kExpertDataGroup,  ///< as kDataGroup and kReplicaGroup, for routed experts
  kExpertReplicaGroup,
  kGroupKinds,
};
enum BusyAccount : std::int32_t {
  kComputeAccount,
  kRecomputeAccount,
  kOptimizerAccount,
  kHostAccount,  ///< the device waits for the host in the middle of a step
};
enum ExposedAccount : std::int32_t {
  kTensorAccount,
  kContextAccount,
  kExpertAccount,
  kDataAccount
};
enum PeerSlot : std::int32_t { kPrevious, kNext };

/// Fills a Program's name tables and hands out labels and blocks of one task.
class Vocabulary {
 public:
  explicit Vocabulary(Program& program);
  std::int32_t label(std::string_view text);
  /// The block made of this task alone; equal tasks share it.
  std::int32_t single(const Task& task, const char* name);
  Program& program() { return program_; }

 private:
  Program& program_;
  std::map<std::string, std::int32_t, std::less<>> labels_;
  std::vector<std::int32_t> singles_;  ///< blocks
};

}  // namespace foretrain
