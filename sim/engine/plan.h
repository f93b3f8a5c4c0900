#pragma once

#include "foretrain/program.h"
#include "sim/program/stretch.h"

#include <cstdint>
#include <limits>
#include <vector>

/// The program as the dataflow evaluator reads it. What a task is lies with its block, once; a call
/// adds where the block stands in the list and what it waits for. Instances are grouped in cohorts
/// that advance together.
namespace foretrain {

/// A place in a stream's list: the call, then the place among the tasks its block has on the
/// stream.
using Cursor = std::int64_t;
inline constexpr Cursor kListEnd = std::numeric_limits<Cursor>::max();
inline Cursor cursor_at(std::int32_t call, std::int32_t index) {
  return (static_cast<Cursor>(call) << 32) | index;
}
inline std::int32_t call_of(Cursor cursor) {
  return static_cast<std::int32_t>(cursor >> 32);
}
inline std::int32_t index_of(Cursor cursor) {
  return static_cast<std::int32_t>(cursor & 0xffffffff);
}

/// A wait for another stream, within a block. Waits for an earlier task of the same stream are left
/// out, here and between calls: the stream itself keeps that order.
struct BlockWait {
  std::int32_t producer = 0;  ///< local
  std::int32_t stream = 0;    ///< of the producer, as the rest
  std::int32_t index = 0;
  std::int32_t row = -1;
};

struct BlockTask {
  const Task* task = nullptr;
  std::int64_t launch = 0;    ///< ps from the call's
  std::int32_t price = 0;     ///< index over all tasks of all blocks
  std::int32_t index = 0;     ///< among the block's tasks on its stream
  std::int32_t ordinal = -1;  ///< collectives: n-th of the kind in the block
  std::int32_t first_wait = 0, wait_count = 0;
  std::int32_t row = -1;  ///< of its end among those kept of a call; -1: nobody reads it
};

struct BlockPlan {
  struct OnStream {
    std::int32_t stream = 0;
    std::vector<std::int32_t> tasks;  ///< local, in order
  };
  struct OfKind {
    std::int32_t kind = 0;
    std::int32_t collectives = 0;
  };
  std::vector<BlockTask> tasks;
  std::vector<BlockWait> waits;
  std::vector<OnStream> streams;
  std::vector<OfKind> kinds;
  std::vector<std::int32_t> feeds_primary;  ///< streams some task of stream 0 waits for
  std::int32_t send = -1, receive = -1;     ///< local
  std::int32_t rows = 0;                    ///< ends that somebody reads
  bool launches = false;                    ///< some launch offset is not 0

  const std::vector<std::int32_t>& on(std::int32_t stream) const;
};

/// A wait of a call's task for a task of a call.
struct CallWait {
  std::int32_t task = 0;  ///< local
  std::int32_t stream = 0;
  Cursor at = 0;              ///< the producer
  std::int32_t producer = 0;  ///< local in its call
  std::int32_t row = -1;      ///< of its end in that call
  std::int32_t carried = -1;  ///< of the step before: slot among the values the next step reads
};

struct CallPlan {
  std::int64_t launch = 0;  ///< ps from the host's base
  std::int32_t block = 0;
  std::int32_t first_wait = 0, wait_count = 0;
  std::int32_t readers = 0;        ///< waits of the step for its tasks, matching receives included
  std::int32_t first_ordinal = 0;  ///< into ListPlan::ordinals, one for each of its block's kinds
  std::int32_t receive = -1;       ///< n-th receive of the list
  Stretches stretches;
  bool kept = false;  ///< has a task of ListPlan::kept
};

/// A task whose end outlives the step, or ends something.
struct KeptTask {
  std::int32_t call = 0, local = 0;
  std::int32_t carried = -1;
  bool host_sync = false, step_end = false;
};

/// One template.
struct ListPlan {
  std::vector<CallPlan> calls;
  std::vector<CallWait> waits;  ///< of each call, by task
  std::vector<std::int32_t> ordinals;
  std::vector<std::vector<std::int32_t>> streams;  ///< the calls with tasks there
  std::vector<bool> feeds_primary;  ///< stream: some task of stream 0 waits for one of its tasks
  std::vector<KeptTask> kept;       ///< by call, then task
  std::int32_t carried = 0;         ///< tasks the next step waits for
  std::int32_t receives = 0;
  std::vector<std::int32_t> collectives;  ///< per group kind: how many in a step
  bool host_bound = false;                ///< some launch offset or a host synchronisation
};

/// Cohorts whose instances meet in the groups of one kind: each group has members of each cohort.
struct TemplateLink {
  std::vector<std::int32_t> cohorts;
  std::int32_t groups = 0;
};

/// Instances that can be advanced side by side: one template, and the same cohorts behind their
/// groups and peers, so that "all may go on" and "one may go on" are the same thing.
struct Cohort {
  std::int32_t list = 0;                ///< template
  std::vector<std::int32_t> instances;  ///< ascending
  std::vector<std::int32_t> link;  ///< per group kind: index into ProgramPlan::links; -1: unused
  std::vector<std::vector<std::int32_t>> group;  ///< per kind, per member: group within the link
  std::array<std::int32_t, kPeerSlots> peer_cohort = {-1, -1};
  std::array<std::vector<std::int32_t>, kPeerSlots> peer;  ///< per member: index in the peer cohort
  std::vector<std::int32_t> partner;  ///< per receive: call of the peer's list that sends; -1: none
};

struct ProgramPlan {
  std::vector<BlockPlan> blocks;
  std::vector<ListPlan> lists;  ///< per template
  std::vector<Cohort> cohorts;
  std::vector<TemplateLink> links;
  std::vector<std::int32_t> place;  ///< per instance: index within its cohort
  std::int32_t block_tasks = 0;     ///< over all blocks
};
ProgramPlan make_plan(const Program& program);

/// Parts of make_plan.
std::vector<BlockPlan> plan_blocks(const Program& program);
ListPlan plan_list(const Program& program,
                   const std::vector<BlockPlan>& blocks,
                   const Template& list);
/// Gives a row to every task whose end another stream, call or instance reads.
void assign_rows(ProgramPlan& plan);

}  // namespace foretrain
