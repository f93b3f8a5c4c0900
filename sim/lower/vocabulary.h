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

/// Messages between pipeline ranks are numbered by what they carry (`cell`: copy, stage,
/// micro-batch, slice of the producer), which way, and whether it is the token of a rendezvous.
struct MessageWords {
  bool gradient = false;
  bool token = false;
};
constexpr std::int32_t message_number(std::int32_t cell, MessageWords words) {
  return cell * 4 + (words.gradient ? 2 : 0) + (words.token ? 1 : 0);
}
constexpr MessageWords message_words(std::int32_t number) {
  return {(number & 2) != 0, (number & 1) != 0};
}

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
