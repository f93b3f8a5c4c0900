#pragma once

#include "foretrain/program.h"
#include "sim/base/random.h"

#include <algorithm>
#include <cstdint>
#include <vector>

/// Random programs that are sound by construction. All calls are drawn in one global order and
/// appended to the templates they belong to, so that order is one in which everything can run:
/// no deadlock, whatever the streams.
namespace foretrain {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  /// Uniform in [0, bound).
  std::int32_t below(std::int64_t bound) {
    const std::uint64_t bits = random_bits(seed_, 0, count_++);
    return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(bound));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

struct RandomProgramOptions {
  int calls = 24;  ///< draws of the global order
  bool cross_dependencies = true;
  bool launches = true;
  bool shuffle_calls = false;  ///< breaks the global order: may deadlock, stays sound
  int slow_share = 3;          ///< one instance in so many has factors of its own
  bool stretches = false;      ///< some calls take longer beside others
  bool rotated_peers = true;   ///< replicas of neighbouring templates pair up at random
};

/// Streams: 0 compute, 1 tp, 2 dp (kCollective), 3 send, 4 receive, 5 other. Group kinds: 0 within
/// a template, 1 across all templates, 2 across the first two.
class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, const RandomProgramOptions& options)
      : options_(options), draw_(seed) {}

  Program build() {
    templates_ = 1 + draw_.below(4);
    replicas_ = 1 + draw_.below(6);
    lists_.resize(templates_);
    name_everything();
    for (int call = 0; call < options_.calls; ++call) {
      draw_call();
    }
    for (int t = 0; t < templates_; ++t) {
      lists_[t].end = static_cast<std::int32_t>(lists_[t].calls.size());
      add_call(t, local_block(true));
    }
    for (int call = 0; call < 2; ++call) {
      add_call(draw_.below(templates_), local_block(false));
    }
    add_dependencies();
    place_instances();
    for (const List& list : lists_) {
      emit(list);
    }
    return std::move(program_);
  }

 private:
  struct Wait {
    std::int32_t task = 0, call = 0, local = 0;
    bool previous_step = false;
  };
  struct DrawnCall {
    std::int32_t block = 0, message = -1;
    std::vector<Wait> waits;
  };
  struct List {
    std::vector<DrawnCall> calls;
    std::int32_t end = 0;  ///< call whose first task ends the step
  };

  void name_everything() {
    program_.streams = {{"compute", StreamRole::kPrimary, 0},
                        {"tp", StreamRole::kCollective, 0},
                        {"dp", StreamRole::kCollective, 1},
                        {"send", StreamRole::kPointToPoint, 0},
                        {"receive", StreamRole::kPointToPoint, 0},
                        {"other", StreamRole::kOther, 0}};
    program_.group_kinds = {"tp", "world", "pair"};
    program_.groups.resize(3);
    program_.busy_accounts = {"compute", "optimizer"};
    program_.exposed_accounts = {"tp", "dp"};
    program_.labels = {"task"};
  }

  Task drawn_task(std::int32_t stream) {
    Task task;
    task.stream = stream;
    task.work[draw_.below(kResourceCount)] = draw_.below(40);
    task.work[draw_.below(kResourceCount)] = draw_.one_in(3) ? draw_.below(20) : 0;
    task.account = draw_.below(2);
    task.bytes = draw_.below(100);
    if (options_.launches && draw_.one_in(4)) {
      task.launch_offset = Duration{draw_.below(30)};
    }
    return task;
  }

  std::int32_t add_block(std::vector<Task> tasks) {
    Block block;
    block.name = "B";
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      tasks[t].first_dependency = static_cast<std::int32_t>(block.dependencies.size());
      for (std::size_t d = 0; d < t; ++d) {
        if (!draw_.one_in(3)) {
          block.dependencies.push_back(static_cast<std::int32_t>(d));
        }
      }
      tasks[t].dependency_count =
          static_cast<std::int32_t>(block.dependencies.size()) - tasks[t].first_dependency;
    }
    block.tasks = std::move(tasks);
    program_.blocks.push_back(std::move(block));
    return static_cast<std::int32_t>(program_.blocks.size()) - 1;
  }

  std::int32_t local_block(bool primary) {
    std::vector<Task> tasks = {drawn_task(primary || draw_.one_in(2) ? 0 : draw_.below(6))};
    for (int more = draw_.below(3); more > 0; --more) {
      tasks.push_back(drawn_task(draw_.one_in(2) ? 0 : draw_.below(6)));
    }
    return add_block(std::move(tasks));
  }

  std::int32_t collective_block(std::int32_t kind) {
    std::vector<Task> tasks;
    if (draw_.one_in(2)) {
      tasks.push_back(drawn_task(0));
    }
    tasks.push_back(drawn_task(draw_.one_in(5) ? draw_.below(6) : 1 + draw_.below(2)));
    tasks.back().kind = TaskKind::kCollective;
    tasks.back().group_kind = kind;
    if (draw_.one_in(2)) {
      tasks.push_back(drawn_task(0));
    }
    return add_block(std::move(tasks));
  }

  std::int32_t message_block(TaskKind kind, std::int32_t slot, std::int64_t bytes) {
    const std::int32_t usual = kind == TaskKind::kSend ? 3 : 4;
    Task task = drawn_task(draw_.one_in(5) ? draw_.below(6) : usual);
    task.kind = kind;
    task.peer_slot = slot;
    task.bytes = bytes;
    return add_block({task});
  }

  void add_call(int list, std::int32_t block, std::int32_t message = -1) {
    lists_[list].calls.push_back({block, message, {}});
  }

  void draw_call() {
    const int list = draw_.below(templates_);
    switch (draw_.below(6)) {
      case 0:
      case 1:
        add_call(list, local_block(false));
        break;
      case 2: {
        const std::int32_t block = collective_block(0);
        add_call(list, block);
        if (draw_.one_in(2)) {
          add_call(list, block);
        }
        break;
      }
      case 3:
        draw_joint(draw_.one_in(2) ? 1 : 2);
        break;
      default:
        draw_message();
    }
  }

  /// A collective across templates; they share its block or have their own.
  void draw_joint(std::int32_t kind) {
    const int last = kind == 1 ? templates_ : std::min(2, templates_);
    const std::int32_t shared = collective_block(kind);
    for (int list = 0; list < last; ++list) {
      add_call(list, draw_.one_in(2) ? shared : collective_block(kind));
    }
  }

  void draw_message() {
    if (templates_ < 2) {
      return;
    }
    const int lower = draw_.below(templates_ - 1);
    const bool forward = draw_.one_in(2);
    const std::int64_t bytes = draw_.below(1000);
    const std::int32_t number = messages_++;
    const std::int32_t out = forward ? 0 : 1;
    add_call(forward ? lower : lower + 1, message_block(TaskKind::kSend, out, bytes), number);
    add_call(
        forward ? lower + 1 : lower, message_block(TaskKind::kReceive, 1 - out, bytes), number);
  }

  void add_dependencies() {
    if (!options_.cross_dependencies) {
      return;
    }
    for (List& list : lists_) {
      const auto calls = static_cast<std::int32_t>(list.calls.size());
      for (std::int32_t c = 0; c < calls; ++c) {
        for (int count = draw_.below(4); count > 0; --count) {
          const bool previous = draw_.one_in(4);
          if (!previous && c == 0) {
            continue;
          }
          const std::int32_t producer = draw_.below(previous ? calls : c);
          list.calls[c].waits.push_back({draw_.below(size_of(list.calls[c])),
                                         producer,
                                         draw_.below(size_of(list.calls[producer])),
                                         previous});
        }
        std::stable_sort(list.calls[c].waits.begin(),
                         list.calls[c].waits.end(),
                         [](const Wait& a, const Wait& b) { return a.task < b.task; });
      }
    }
  }

  std::int32_t size_of(const DrawnCall& call) const {
    return static_cast<std::int32_t>(program_.blocks[call.block].tasks.size());
  }

  void place_instances() {
    const std::int32_t tp = 1 + draw_.below(3);
    const std::int32_t spread = 1 + draw_.below(3);
    draw_factors();
    for (int t = 0; t < templates_; ++t) {
      for (std::int32_t r = 0; r < replicas_; ++r) {
        Instance instance;
        instance.template_index = t;
        instance.rank = t * replicas_ + r;
        instance.groups = {-1, -1, -1};
        program_.instances.push_back(instance);
        join(instance.rank, 0, t * replicas_ + r / tp);
        join(instance.rank, 1, r % spread);
        if (t < 2) {
          join(instance.rank, 2, r / spread);
        }
        if (draw_.one_in(options_.slow_share)) {
          program_.instances.back().factor_set =
              draw_.below(static_cast<std::int64_t>(program_.factor_sets.size()));
        }
      }
    }
    for (auto& groups : program_.groups) {
      std::erase_if(groups, [](const auto& members) { return members.empty(); });
    }
    for (std::size_t kind = 0; kind < 3; ++kind) {
      for (std::size_t group = 0; group < program_.groups[kind].size(); ++group) {
        for (const std::int32_t member : program_.groups[kind][group]) {
          program_.instances[member].groups[kind] = static_cast<std::int32_t>(group);
        }
      }
    }
    connect_templates();
  }

  void join(std::int32_t instance, std::int32_t kind, std::int32_t group) {
    auto& groups = program_.groups[kind];
    groups.resize(std::max<std::size_t>(groups.size(), group + 1));
    groups[group].push_back(instance);
  }

  void connect_templates() {
    for (int t = 0; t + 1 < templates_; ++t) {
      const std::int32_t turn = options_.rotated_peers ? draw_.below(replicas_) : 0;
      for (std::int32_t r = 0; r < replicas_; ++r) {
        const std::int32_t lower = t * replicas_ + r;
        const std::int32_t upper = (t + 1) * replicas_ + (r + turn) % replicas_;
        program_.instances[lower].peers[0] = upper;
        program_.instances[upper].peers[1] = lower;
      }
    }
  }

  void draw_factors() {
    for (int set = 0; set < 3; ++set) {
      FactorSet factors;
      for (std::int64_t& factor : factors.base) {
        factor = draw_.one_in(2) ? kUnitFactor : kUnitFactor / 2 + draw_.below(2 * kUnitFactor);
      }
      if (draw_.one_in(2)) {
        FactorWindow window;
        window.factors[draw_.below(kResourceCount)] = kUnitFactor + draw_.below(kUnitFactor);
        window.first_step = draw_.below(2);
        window.last_step = window.first_step + draw_.below(2);
        factors.windows.push_back(window);
      }
      program_.factor_sets.push_back(factors);
    }
  }

  /// Calls of the list in their final order; call index -> place.
  std::vector<std::int32_t> order_of(const List& list) {
    std::vector<std::int32_t> order;
    for (std::size_t c = 0; c < list.calls.size(); ++c) {
      order.push_back(static_cast<std::int32_t>(c));
    }
    if (options_.shuffle_calls) {
      const auto from = static_cast<std::size_t>(draw_.below(static_cast<int>(order.size())));
      const auto to = static_cast<std::size_t>(draw_.below(static_cast<int>(order.size())));
      std::swap(order[from], order[to]);
    }
    return order;
  }

  void emit(const List& list) {
    Template result;
    const std::vector<std::int32_t> order = order_of(list);
    std::vector<std::int32_t> first(list.calls.size());
    for (const std::int32_t c : order) {
      first[c] = result.task_count;
      result.task_count += size_of(list.calls[c]);
    }
    for (const std::int32_t c : order) {
      const DrawnCall& drawn = list.calls[c];
      Call call;
      call.block = drawn.block;
      call.message = drawn.message;
      call.first_task = first[c];
      call.first_dependency = static_cast<std::int32_t>(result.dependencies.size());
      call.dependency_count = static_cast<std::int32_t>(drawn.waits.size());
      for (const Wait& wait : drawn.waits) {
        result.dependencies.push_back(
            {wait.task, first[wait.call] + wait.local, wait.previous_step});
      }
      if (options_.launches && draw_.one_in(3)) {
        call.launch_offset = Duration{draw_.below(200)};
      }
      if (options_.stretches && draw_.one_in(3)) {
        call.kernel_stretch += draw_.below(kUnitFactor);
        call.transfer_stretch += draw_.one_in(2) ? draw_.below(2 * kUnitFactor) : 0;
      }
      result.calls.push_back(call);
    }
    result.step_end_task = first[list.end];
    if (options_.launches && draw_.one_in(2)) {
      result.host_sync_task = draw_.below(result.task_count);
    }
    program_.templates.push_back(std::move(result));
  }

  RandomProgramOptions options_;
  Draw draw_;
  int templates_ = 1;
  std::int32_t replicas_ = 1;
  std::int32_t messages_ = 0;
  std::vector<List> lists_;
  Program program_;
};

inline Program random_program(std::uint64_t seed, const RandomProgramOptions& options = {}) {
  return RandomProgram(seed, options).build();
}

}  // namespace foretrain
