#pragma once

#include "foretrain/program.h"

#include <cstdint>
#include <vector>

/// The program as the dataflow evaluator reads it: lists unrolled per template, instances grouped
/// in cohorts that advance together.
namespace foretrain {

/// A wait for another stream of the same instance. Waits for an earlier task of the same stream are
/// left out: the stream itself keeps that order.
struct FlatWait {
  std::int32_t producer = 0;  ///< template-wide
  std::int32_t position = 0;  ///< of the producer, in its stream's list
  std::int32_t stream = 0;    ///< of the producer
  bool previous_step = false;
};

struct FlatTask {
  const Task* task = nullptr;
  std::int64_t launch = 0;      ///< ps from the host's base to this launch
  std::int32_t block_task = 0;  ///< index over all tasks of all blocks
  std::int32_t call = 0;
  std::int32_t local = 0;
  std::int32_t position = 0;  ///< in its stream's list
  std::int32_t first_wait = 0, wait_count = 0;
  std::int32_t readers = 0;   ///< waits of the same step for this task, matching receives included
  std::int32_t carried = -1;  ///< slot among the values the next step waits for
  std::int32_t ordinal = -1;  ///< collectives: n-th of the kind in the list
};

/// One template, unrolled.
struct FlatList {
  std::vector<FlatTask> tasks;
  std::vector<FlatWait> waits;
  std::vector<std::vector<std::int32_t>> streams;  ///< task indices in list order
  std::vector<bool> feeds_primary;    ///< stream: some task of stream 0 waits for one of its tasks
  std::vector<std::int32_t> carried;  ///< tasks whose end the next step waits for
  std::vector<std::int32_t> collectives;  ///< per group kind: how many in a step
  bool host_bound = false;                ///< some launch offset or a host synchronisation
};
FlatList flatten(const Program& program, const Template& list);

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
  std::vector<std::int32_t> link;       ///< per group kind: index into Plan::links; -1: unused
  std::vector<std::vector<std::int32_t>> group;  ///< per kind, per member: group within the link
  std::array<std::int32_t, kPeerSlots> peer_cohort = {-1, -1};
  std::array<std::vector<std::int32_t>, kPeerSlots> peer;  ///< per member: index in the peer cohort
  std::vector<std::int32_t> partner;  ///< receives: task of the peer's list that sends; by task
};

struct Plan {
  std::vector<FlatList> lists;  ///< per template
  std::vector<Cohort> cohorts;
  std::vector<TemplateLink> links;
  std::vector<std::int32_t> place;  ///< per instance: index within its cohort
  std::int32_t block_tasks = 0;     ///< over all blocks
};
Plan make_plan(const Program& program);

}  // namespace foretrain
