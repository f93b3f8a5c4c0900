#pragma once

#include "foretrain/program.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

/// Programs small enough to compute by hand. Streams: 0 compute, 1 tp, 2 dp (role kCollective), 3
/// send, 4 receive. Every task is a block and a call of its own.
namespace foretrain {

enum TinyStream : std::int32_t { kCompute, kTp, kDp, kSendStream, kReceiveStream };

struct TinyTask {
  TaskKind kind = TaskKind::kLocal;
  std::int32_t stream = kCompute;
  std::int64_t time = 0;                 ///< ps
  std::vector<std::int32_t> after = {};  ///< tasks of the same template, same step
  std::vector<std::int32_t> after_previous = {};
  std::int32_t kind_or_slot = 0;  ///< group kind of a collective, peer slot of a message
  std::int32_t message = -1;
  std::int64_t bytes = 0;
  std::int64_t launch = 0;
  std::int32_t account = 0;
};

inline TinyTask compute(std::int64_t time, std::vector<std::int32_t> after = {}) {
  return {.time = time, .after = std::move(after)};
}
inline TinyTask collective(std::int32_t stream,
                           std::int64_t time,
                           std::vector<std::int32_t> after = {}) {
  return {.kind = TaskKind::kCollective,
          .stream = stream,
          .time = time,
          .after = std::move(after),
          .kind_or_slot = stream == kTp ? 0 : 1};
}
inline TinyTask send(std::int32_t message,
                     std::int64_t time,
                     std::vector<std::int32_t> after = {},
                     std::int32_t slot = 0) {
  return {.kind = TaskKind::kSend,
          .stream = kSendStream,
          .time = time,
          .after = std::move(after),
          .kind_or_slot = slot,
          .message = message,
          .bytes = 8};
}
inline TinyTask receive(std::int32_t message, std::int32_t slot = 0) {
  return {.kind = TaskKind::kReceive,
          .stream = kReceiveStream,
          .kind_or_slot = slot,
          .message = message,
          .bytes = 8};
}

class TinyProgram {
 public:
  TinyProgram() {
    program.streams = {{"compute", StreamRole::kPrimary, 0},
                       {"tp", StreamRole::kCollective, 0},
                       {"dp", StreamRole::kCollective, 1},
                       {"send", StreamRole::kPointToPoint, 0},
                       {"receive", StreamRole::kPointToPoint, 0}};
    program.group_kinds = {"tp", "dp"};
    program.groups.resize(2);
    program.busy_accounts = {"compute", "optimizer"};
    program.exposed_accounts = {"tp", "dp"};
    program.labels = {"task"};
  }

  /// The last task on stream 0 ends the step.
  std::int32_t list(const std::vector<TinyTask>& tasks) {
    Template result;
    for (const TinyTask& task : tasks) {
      const std::int32_t own = result.task_count++;
      add_call(result, task, own);
      if (task.stream == kCompute) {
        result.step_end_task = own;
      }
    }
    program.templates.push_back(std::move(result));
    return static_cast<std::int32_t>(program.templates.size()) - 1;
  }

  std::int32_t instance(std::int32_t list_index, std::vector<std::int32_t> groups = {-1, -1}) {
    Instance result;
    result.template_index = list_index;
    result.rank = static_cast<std::int32_t>(program.instances.size());
    result.groups = std::move(groups);
    for (std::size_t kind = 0; kind < result.groups.size(); ++kind) {
      if (result.groups[kind] >= 0) {
        auto& known = program.groups[kind];
        known.resize(std::max<std::size_t>(known.size(), result.groups[kind] + 1));
        known[result.groups[kind]].push_back(result.rank);
      }
    }
    program.instances.push_back(std::move(result));
    return program.instances.back().rank;
  }

  /// Instance `a` through slot `slot_a` and `b` through `slot_b` are each other's peers.
  void connect(std::int32_t a, std::int32_t b, int slot_a = 0, int slot_b = 0) {
    program.instances[a].peers[slot_a] = b;
    program.instances[b].peers[slot_b] = a;
  }

  /// A factor set with one resource slowed: factor as a ratio.
  std::int32_t slowed(Resource resource, std::int64_t numerator, std::int64_t denominator = 1) {
    FactorSet set;
    set.base[static_cast<int>(resource)] = kUnitFactor * numerator / denominator;
    program.factor_sets.push_back(set);
    return static_cast<std::int32_t>(program.factor_sets.size()) - 1;
  }

  Program program;

 private:
  void add_call(Template& list, const TinyTask& task, std::int32_t own) {
    Task entry;
    entry.work[task.stream == kCompute ? 0 : static_cast<int>(Resource::kLink)] = task.time;
    entry.bytes = task.bytes;
    entry.stream = task.stream;
    entry.kind = task.kind;
    entry.group_kind = task.kind == TaskKind::kCollective ? task.kind_or_slot : -1;
    entry.peer_slot = task.message >= 0 ? task.kind_or_slot : -1;
    entry.account = task.account;
    Call call;
    call.block = static_cast<std::int32_t>(program.blocks.size());
    call.first_task = own;
    call.message = task.message;
    call.launch_offset = Duration{task.launch};
    call.first_dependency = static_cast<std::int32_t>(list.dependencies.size());
    for (const std::int32_t producer : task.after) {
      list.dependencies.push_back({0, producer, false});
    }
    for (const std::int32_t producer : task.after_previous) {
      list.dependencies.push_back({0, producer, true});
    }
    call.dependency_count =
        static_cast<std::int32_t>(list.dependencies.size()) - call.first_dependency;
    program.blocks.push_back({"T" + std::to_string(own), {entry}, {}});
    list.calls.push_back(call);
  }
};

}  // namespace foretrain
