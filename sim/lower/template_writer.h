#pragma once

#include "sim/lower/buckets.h"
#include "sim/lower/call_list.h"
#include "sim/lower/stage_template.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
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
    /// By Phase, then per micro-batch, or one where all are alike; built when first used.
    std::array<std::vector<const StageBlock*>, kPhases> blocks;
    std::vector<Bytes> stash;                ///< per micro-batch likewise, logits included
    std::vector<RankParameters> parameters;  ///< per part
  };
  struct Gather {
    Bucket bucket;
    std::int32_t task = -1;
  };

  // The schedule's actions (template_writer.cpp).
  void forward(const Action& action);
  void backward(const Action& action, Phase phase);
  std::int32_t receive(std::int32_t message, std::int32_t slot);
  void send(std::int32_t message, std::int32_t slot, const ComputeCall& from, const Action& action);
  ComputeCall compute(const Action& action, Phase phase, std::optional<std::int32_t> received);
  void wait_for_latest(std::int32_t task);
  const std::vector<Action>& actions() const {
    return in_.schedule.ranks[static_cast<std::size_t>(links_.pp_rank)];
  }
  const Chunk& chunk(std::int32_t stage) const { return chunks_.at(stage); }
  Bytes stash(const Action& action) const;
  const StageBlock& block(const Action& action, Phase phase);
  std::int32_t message(const Action& action, bool backward) const;

  // States: gradients, optimizer, parameters (template_states.cpp).
  std::int32_t collective(GroupKind kind, CollectiveKind op, Bytes bytes, const char* name);
  void reduce_chunk(std::int32_t stage, const ComputeCall& last, bool overlapped);
  void reduce_bucket(const Bucket& bucket, const ComputeCall& last, bool overlapped);
  void reduce_when_due(const Action& action, std::size_t position, const ComputeCall& done);
  bool last_backward_of_run(std::size_t position) const;
  bool last_backward_of_stage(std::size_t position) const;
  void end_of_step();
  void reduce_shared_tables();
  void update_parameters();
  void gather_parameters();
  void wait_for_gathers();
  std::int64_t owned_parameters() const;
  bool sharded() const { return in_.scenario.parallelism.sharding != Sharding::kNone; }
  bool gathers_units() const { return in_.scenario.parallelism.sharding == Sharding::kZero3; }
  bool reduces_early() const;
  Phase backward_phase(std::size_t position) const;

  const TemplateInputs& in_;
  const LinkClass& links_;
  BuiltTemplate built_;
  CallList calls_;
  std::map<std::int32_t, Chunk> chunks_;  ///< by virtual stage
  ComputeCall latest_;                    ///< the compute call before
  std::vector<std::int32_t>
      blocking_;  ///< transfers without overlap: the next compute waits for them
  std::vector<std::int32_t>
      reductions_;  ///< gradient reductions issued, template-wide task indices
  std::vector<Gather> gathers_;
  std::map<std::int32_t, ComputeCall> first_forwards_;
};

}  // namespace foretrain
