#pragma once

#include "sim/lower/buckets.h"
#include "sim/lower/call_list.h"
#include "sim/lower/stage_template.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace foretrain {

/// Writes one template. Member functions append calls; their order is the host's issue order.
class TemplateWriter {
 public:
  TemplateWriter(const TemplateInputs& inputs, const LinkClass& links);
  BuiltTemplate write();

 private:
  struct ComputeCall {
    std::int32_t call = -1;
    const StageBlock* hooks = nullptr;
  };
  /// One virtual stage of the rank.
  struct Chunk {
    std::array<std::vector<const StageBlock*>, kPhases> blocks;  ///< by Phase, then version
    std::vector<Bytes> stash, recomputed;                        ///< per version, logits included
    Bytes working_set;                                           ///< of a layer that is recomputed
    Bytes loss_only;                         ///< of the logits: not needed by the weight gradient
    std::vector<RankParameters> parameters;  ///< per part
  };
  struct Gather {
    Bucket bucket;
    std::int32_t task = -1;
  };
  /// A transfer between pipeline ranks: what is sent, and to which neighbour or from which.
  struct Hop {
    std::int32_t message = -1;
    std::int32_t slot = -1;
  };
  using Unit = std::span<const Action>;

  // The schedule's units (template_writer.cpp).
  void run_unit(Unit unit, std::size_t position);
  ComputeCall compute(Unit unit, Phase phase, const std::vector<std::int32_t>& received);
  const StageBlock& block(Unit unit, Phase phase);
  void hold_memory(Unit unit);
  void wait_for_latest(std::int32_t task);
  const std::vector<Action>& actions() const {
    return in_.schedule.ranks[static_cast<std::size_t>(links_.pp_rank)];
  }
  const Chunk& chunk(std::int32_t stage) const { return chunks_.at(stage); }
  std::size_t unit_length_at(std::size_t position) const;

  // Transfers (template_transfers.cpp).
  std::optional<Hop> input_of(const Action& action, std::int32_t rank) const;
  std::optional<Hop> output_of(const Action& action) const;
  Hop hop(const Action& producer, bool sends) const;
  std::int32_t receive(const Hop& hop, const Action& action);
  void send_in_order(const Hop& hop, const ComputeCall& from, const Action& action);
  void send(const Hop& hop, const ComputeCall& from, const Action& action);
  std::vector<std::int32_t> messages_awaited(std::int32_t slot) const;
  std::int32_t transfer(TaskKind kind, const Hop& hop, const Action& action, bool token);
  void wait_in_gap();
  std::int32_t stream_of(TaskKind kind, std::int32_t slot) const;
  bool rendezvous() const { return in_.scenario.schedule.p2p == "rendezvous"; }

  // States: gradients, optimizer, parameters (template_states.cpp).
  std::int32_t collective(GroupKind kind, CollectiveKind op, Bytes bytes, const char* name);
  void reduce_chunk(std::int32_t stage, const ComputeCall& last, bool overlapped);
  void reduce_bucket(const Bucket& bucket, const ComputeCall& last, bool overlapped);
  void reduce_when_due(std::size_t position, const ComputeCall& done);
  bool last_backward_of_run(std::size_t position) const;
  bool last_backward_of_stage(std::size_t position) const;
  void end_of_step();
  void reduce_shared_tables();
  void broadcast_loss();
  void update_parameters();
  void validate_afterwards(std::int32_t norm);
  void gather_parameters();
  void wait_for_gathers();
  std::int64_t owned_parameters() const;
  bool sharded() const { return in_.scenario.parallelism.sharding != Sharding::kNone; }
  bool gathers_units() const { return in_.scenario.parallelism.sharding == Sharding::kZero3; }
  bool reduces_early() const;
  Phase phase_of(std::size_t position) const;

  const TemplateInputs& in_;
  const LinkClass& links_;
  BuiltTemplate built_;
  CallList calls_;
  std::map<std::int32_t, Chunk> chunks_;  ///< by virtual stage
  ComputeCall latest_;                    ///< the compute call before
  std::vector<std::int32_t>
      blocking_;  ///< reductions and sends without overlap: the next compute waits for them
  std::vector<std::int32_t> gap_;  ///< transfers since the last compute call
  /// Rendezvous: to each neighbour, messages in the order it receives them, and those that are made
  /// but not yet their turn.
  struct Outbox {
    std::vector<std::int32_t> order;
    std::size_t next = 0;
    std::map<std::int32_t, std::pair<ComputeCall, Action>> made;
  };
  std::array<Outbox, kPeerSlots> outboxes_;
  std::vector<std::int32_t>
      reductions_;  ///< gradient reductions issued, template-wide task indices
  std::vector<Gather> gathers_;
  std::int32_t own_norm_ = -1;  ///< the rank's own part of the gradient norm
  std::map<std::int32_t, ComputeCall> first_forwards_;
};

}  // namespace foretrain
