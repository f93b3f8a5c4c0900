#include "tests/report/tiny_run.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace foretrain {
namespace {

enum TinyStream { kCompute, kTensor, kSendNext, kSendPrevious, kReceivePrevious, kReceiveNext };
enum TinyBlock { kForward, kBackward, kToNext, kToPrevious, kFromPrevious, kFromNext, kOptimizer };

Task task_of(TaskKind kind, int stream, std::int32_t label, std::int64_t time) {
  Task task;
  task.kind = kind;
  task.stream = stream;
  task.label = label;
  task.work[0] = time;
  return task;
}

/// Kernels with a collective after the first; `collective` is the label.
Block compute_block(const char* name,
                    const TinyShape& shape,
                    int kernels,
                    std::int32_t collective) {
  Block block;
  block.name = name;
  for (int k = 0; k < kernels; ++k) {
    Task kernel = task_of(TaskKind::kLocal, kCompute, 0, shape.kernel_time + 1000 * k);
    kernel.flops = 1'000'000;
    kernel.first_dependency = static_cast<std::int32_t>(block.dependencies.size());
    if (k == 1) {
      block.dependencies.push_back(1);
      kernel.dependency_count = 1;
    }
    block.tasks.push_back(kernel);
    if (k == 0) {
      Task gather = task_of(TaskKind::kCollective, kTensor, collective, shape.kernel_time / 3);
      gather.group_kind = 0;
      gather.bytes = 4096;
      gather.first_dependency = static_cast<std::int32_t>(block.dependencies.size());
      gather.dependency_count = 1;
      block.dependencies.push_back(0);
      block.tasks.push_back(gather);
    }
  }
  return block;
}

Block hop_block(const char* name, TaskKind kind, int stream, int slot, std::int64_t time) {
  Task hop = task_of(kind, stream, 3, kind == TaskKind::kSend ? time : 0);
  hop.peer_slot = slot;
  hop.bytes = 8192;
  return {name, {hop}, {}};
}

struct TemplateBuilder {
  const Program& program;
  Template list;
  std::int32_t add(TinyBlock block, int stage, int micro_batch, int message = -1) {
    Call call;
    call.block = block;
    call.first_task = list.task_count;
    call.first_dependency = static_cast<std::int32_t>(list.dependencies.size());
    call.stage = stage;
    call.micro_batch = micro_batch;
    call.message = message;
    list.task_count += static_cast<std::int32_t>(program.blocks[block].tasks.size());
    list.calls.push_back(call);
    return list.task_count - 1;
  }
  void wait(std::int32_t task, std::int32_t producer) {
    list.dependencies.push_back({task, producer, false});
    ++list.calls.back().dependency_count;
  }
};

Template stage_list(const Program& program, const TinyShape& shape, int stage) {
  TemplateBuilder builder{program, {}};
  const bool first = stage == 0;
  const bool last = stage + 1 == shape.stages;
  for (const bool forward : {true, false}) {
    for (int m = 0; m < shape.micro_batches; ++m) {
      const int message = forward ? m : shape.micro_batches + m;
      std::int32_t received = -1;
      if (forward ? !first : !last) {
        received = builder.add(forward ? kFromPrevious : kFromNext, stage, m, message);
      }
      const std::int32_t done = builder.add(forward ? kForward : kBackward, stage, m);
      Call& call = builder.list.calls.back();
      (forward ? call.allocated_bytes : call.freed_bytes) = 1'000'000'000;
      if (received >= 0) {
        builder.wait(0, received);
      }
      if (forward ? !last : !first) {
        builder.add(forward ? kToNext : kToPrevious, stage, m, message);
        builder.wait(0, done);
      }
    }
  }
  builder.list.step_end_task = builder.add(kOptimizer, -1, -1);
  builder.list.base_bytes = 20'000'000'000;
  builder.list.stage = stage;
  return builder.list;
}

void add_instances(const TinyShape& shape, Program& program) {
  program.groups.resize(1);
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<std::int32_t> group;
    for (int t = 0; t < shape.tensor; ++t) {
      Instance instance;
      instance.template_index = stage;
      instance.rank = stage * shape.tensor + t;
      instance.peers = {stage > 0 ? instance.rank - shape.tensor : -1,
                        stage + 1 < shape.stages ? instance.rank + shape.tensor : -1};
      instance.groups = {stage};
      program.instances.push_back(instance);
      group.push_back(instance.rank);
    }
    program.groups[0].push_back(group);
  }
}

/// The relaxation: every task of every step, until all have run.
class Relaxation {
 public:
  Relaxation(const Program& program, int steps) : program_(program), steps_(steps) {
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      unroll(static_cast<std::int32_t>(i));
    }
  }

  Timeline run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::vector<Work>& works : ranks_) {
        for (Work& work : works) {
          moved = (!work.started && start(work)) || moved;
          moved = (work.started && !work.done && finish(work)) || moved;
        }
      }
    }
    return collect();
  }

 private:
  struct Work {
    Span span;
    const Task* task = nullptr;
    std::vector<std::size_t> waits;  ///< indices in this rank's list
    std::int64_t meeting = 0;        ///< collectives: how many the rank issued before
    std::int32_t message = -1;
    bool started = false, done = false;
  };

  void unroll(std::int32_t i) {
    const Instance& instance = program_.instances[static_cast<std::size_t>(i)];
    const Template& list = program_.templates[static_cast<std::size_t>(instance.template_index)];
    std::vector<Work> works;
    std::map<int, std::size_t> stream_last;
    std::int64_t meetings = 0;
    for (int step = 0; step < steps_; ++step) {
      const std::size_t first = works.size();
      for (std::size_t c = 0; c < list.calls.size(); ++c) {
        const Call& call = list.calls[c];
        const Block& block = program_.blocks[static_cast<std::size_t>(call.block)];
        for (std::size_t t = 0; t < block.tasks.size(); ++t) {
          const Task& task = block.tasks[t];
          Work work;
          work.span = {i, step, static_cast<int>(c), static_cast<int>(t), {}, {}, {}};
          work.task = &task;
          work.message = call.message;
          for (int d = 0; d < task.dependency_count; ++d) {
            work.waits.push_back(
                first + static_cast<std::size_t>(call.first_task) +
                static_cast<std::size_t>(
                    block.dependencies[static_cast<std::size_t>(task.first_dependency + d)]));
          }
          for (int d = 0; d < call.dependency_count; ++d) {
            const CallDependency& dependency =
                list.dependencies[static_cast<std::size_t>(call.first_dependency + d)];
            if (dependency.task == static_cast<int>(t)) {
              work.waits.push_back(first + static_cast<std::size_t>(dependency.producer));
            }
          }
          if (stream_last.contains(task.stream)) {
            work.waits.push_back(stream_last[task.stream]);
          }
          stream_last[task.stream] = works.size();
          work.meeting = task.kind == TaskKind::kCollective ? meetings++ : 0;
          works.push_back(work);
        }
      }
    }
    ranks_.push_back(works);
  }

  bool start(Work& work) {
    const std::vector<Work>& mine = ranks_[static_cast<std::size_t>(work.span.instance)];
    Instant when{};
    for (const std::size_t wait : work.waits) {
      if (!mine[wait].done) {
        return false;
      }
      when = std::max(when, mine[wait].span.end);
    }
    work.span.start = work.span.transfer_start = when;
    work.started = true;
    return true;
  }

  bool finish(Work& work) {
    // Slower by rank, so that members of a group arrive apart.
    const Duration slow{work.task->kind == TaskKind::kLocal ? 7 * work.span.instance : 0};
    const Duration time = Duration{work.task->work[0]} + slow;
    if (work.task->kind == TaskKind::kCollective) {
      return meet(work, time);
    }
    if (work.task->kind == TaskKind::kReceive) {
      const Work* send = matching_send(work);
      if (send == nullptr || !send->done) {
        return false;
      }
      work.span.end = std::max(work.span.start, send->span.end);
    } else {
      work.span.end = work.span.start + time;
    }
    return work.done = true;
  }

  bool meet(const Work& work, Duration time) {
    std::vector<Work*> members;
    Instant latest{};
    const Instance& instance = program_.instances[static_cast<std::size_t>(work.span.instance)];
    for (const std::int32_t member :
         program_.groups[0][static_cast<std::size_t>(instance.groups[0])]) {
      for (Work& other : ranks_[static_cast<std::size_t>(member)]) {
        if (other.task->kind == TaskKind::kCollective && other.meeting == work.meeting) {
          if (!other.started) {
            return false;
          }
          latest = std::max(latest, other.span.start);
          members.push_back(&other);
        }
      }
    }
    for (Work* member : members) {
      member->span.transfer_start = latest;
      member->span.end = latest + time;
      member->done = true;
    }
    return true;
  }

  const Work* matching_send(const Work& work) const {
    const Instance& instance = program_.instances[static_cast<std::size_t>(work.span.instance)];
    const std::int32_t peer = instance.peers[static_cast<std::size_t>(work.task->peer_slot)];
    for (const Work& other : ranks_[static_cast<std::size_t>(peer)]) {
      if (other.task->kind == TaskKind::kSend && other.message == work.message &&
          other.span.step == work.span.step) {
        return &other;
      }
    }
    return nullptr;
  }

  Timeline collect() const {
    Timeline timeline;
    timeline.step_ends.assign(static_cast<std::size_t>(steps_) + 1, Instant{});
    for (const std::vector<Work>& works : ranks_) {
      std::vector<Span> spans;
      std::vector<Instant> ends(static_cast<std::size_t>(steps_) + 1, Instant{});
      for (const Work& work : works) {
        spans.push_back(work.span);
        ends[static_cast<std::size_t>(work.span.step) + 1] = work.span.end;  // optimizer is last
      }
      std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        return a.start < b.start;
      });
      timeline.spans.insert(timeline.spans.end(), spans.begin(), spans.end());
      for (std::size_t s = 0; s < ends.size(); ++s) {
        timeline.step_ends[s] = std::max(timeline.step_ends[s], ends[s]);
      }
      timeline.instance_step_ends.push_back(ends);
    }
    timeline.tasks = static_cast<std::int64_t>(timeline.spans.size());
    return timeline;
  }

  const Program& program_;
  int steps_;
  std::vector<std::vector<Work>> ranks_;
};

}  // namespace

Program tiny_program(const TinyShape& shape) {
  Program program;
  program.streams = {{"compute", StreamRole::kPrimary, 0},
                     {"tp", StreamRole::kCollective, 0},
                     {"pp send next", StreamRole::kPointToPoint, 0},
                     {"pp send previous", StreamRole::kPointToPoint, 0},
                     {"pp receive previous", StreamRole::kPointToPoint, 0},
                     {"pp receive next", StreamRole::kPointToPoint, 0}};
  program.group_kinds = {"tp"};
  program.busy_accounts = {"compute", "recompute", "optimizer"};
  program.exposed_accounts = {"tp"};
  program.labels = {"qkv", "tp all-gather", "tp reduce-scatter", "hop", "adamw"};
  const std::int64_t hop = shape.send_time;
  program.blocks = {compute_block("F 2 layers", shape, shape.kernels, 1),
                    compute_block("B 2 layers", shape, 2 * shape.kernels, 2),
                    hop_block("to next", TaskKind::kSend, kSendNext, 1, hop),
                    hop_block("to previous", TaskKind::kSend, kSendPrevious, 0, hop),
                    hop_block("from previous", TaskKind::kReceive, kReceivePrevious, 0, hop),
                    hop_block("from next", TaskKind::kReceive, kReceiveNext, 1, hop),
                    {"optimizer", {task_of(TaskKind::kLocal, kCompute, 4, 90'500)}, {}}};
  for (int stage = 0; stage < shape.stages; ++stage) {
    program.templates.push_back(stage_list(program, shape, stage));
  }
  add_instances(shape, program);
  return program;
}

Timeline tiny_timeline(const Program& program, int steps) {
  return Relaxation(program, steps).run();
}

}  // namespace foretrain
