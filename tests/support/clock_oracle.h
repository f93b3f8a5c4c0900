#pragma once

#include "tests/support/clock_flights.h"

#include "foretrain/program.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace foretrain {

/// One cold step of a program whose transfers share links, by a clock: at each picosecond at which
/// something happens, all heads of streams are looked at and all rates are found anew.
class ClockOracle {
 public:
  explicit ClockOracle(const Program& program) : program_(program), flights_(program) {
    for (const Instance& instance : program.instances) {
      const Template& list = program.templates[instance.template_index];
      ends_.emplace_back(list.task_count, kNever);
      heads_.emplace_back(program.streams.size(), 0);
      add_tasks(list);
    }
    for (std::int64_t next = 0; next != kNever; next = next_time()) {
      flights_.move(next, [this](std::size_t flight, std::int64_t end) {
        for (const auto& [i, own] : flying_[flight]) {
          ends_[i][own] = end;
        }
      });
      clock_ = next;
      while (start_some()) {
      }
    }
  }

  std::int64_t latest() const {
    std::int64_t latest = 0;
    for (const std::vector<std::int64_t>& ends : ends_) {
      latest = std::max(latest, *std::max_element(ends.begin(), ends.end()));
    }
    return latest;
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  struct Listed {
    const Call* call = nullptr;
    const Task* task = nullptr;
    std::int32_t ordinal = 0;
    std::vector<std::int32_t> after;
  };
  using Member = std::pair<std::int32_t, std::int32_t>;  ///< instance, task
  void add_tasks(const Template& list) {
    std::vector<Listed>& tasks = tasks_.emplace_back();
    auto& streams = streams_.emplace_back(program_.streams.size());
    std::map<std::int32_t, std::int32_t> issued;
    for (const Call& call : list.calls) {
      const Block& block = program_.blocks[call.block];
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        const Task& task = block.tasks[t];
        Listed one{&call, &task, issued[task.group_kind]++, {}};
        for (std::int32_t d = 0; d < task.dependency_count; ++d) {
          one.after.push_back(call.first_task + block.dependencies[task.first_dependency + d]);
        }
        for (std::int32_t d = 0; d < call.dependency_count; ++d) {
          const CallDependency& wait = list.dependencies[call.first_dependency + d];
          if (wait.task == static_cast<std::int32_t>(t) && !wait.previous_step) {
            one.after.push_back(wait.producer);
          }
        }
        streams[task.stream].push_back(static_cast<std::int32_t>(tasks.size()));
        tasks.push_back(one);
      }
    }
  }

  bool has_ended(std::int32_t instance, std::int32_t task) const {
    return ends_[instance][task] <= clock_;
  }

  bool start_some() {
    bool some = false;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      for (std::size_t s = 0; s < streams_[i].size(); ++s) {
        some = start_head(static_cast<std::int32_t>(i), s) || some;
      }
    }
    return some;
  }

  bool start_head(std::int32_t i, std::size_t stream) {
    const std::vector<std::int32_t>& order = streams_[i][stream];
    std::size_t& head = heads_[i][stream];
    if (head == order.size() || (head > 0 && !has_ended(i, order[head - 1]))) {
      return false;
    }
    const std::int32_t own = order[head];
    const Listed& one = tasks_[i][own];
    const bool waits = std::any_of(one.after.begin(), one.after.end(), [&](std::int32_t other) {
      return !has_ended(i, other);
    });
    if (waits || launch(one) > clock_ || !has_message(i, one)) {
      return false;
    }
    ++head;
    run(i, own, one);
    return true;
  }

  static std::int64_t launch(const Listed& one) {
    return (one.call->launch_offset + one.task->launch_offset).count();
  }

  bool has_message(std::int32_t i, const Listed& one) const {
    if (one.task->kind != TaskKind::kReceive) {
      return true;
    }
    const std::int32_t peer = program_.instances[i].peers[one.task->peer_slot];
    for (std::size_t t = 0; t < tasks_[peer].size(); ++t) {
      const Listed& other = tasks_[peer][t];
      if (other.task->kind == TaskKind::kSend && other.call->message == one.call->message) {
        return has_ended(peer, static_cast<std::int32_t>(t));
      }
    }
    return false;
  }

  void run(std::int32_t i, std::int32_t own, const Listed& one) {
    const Instance& instance = program_.instances[i];
    const Task& task = *one.task;
    if (task.kind == TaskKind::kReceive) {
      ends_[i][own] = clock_;
    } else if (task.kind == TaskKind::kLocal) {
      ends_[i][own] = clock_ + length(i, task.work);
    } else if (task.kind == TaskKind::kSend) {
      fly({{i, own}}, instance.paths[task.peer_slot]);
    } else {
      const std::int32_t group = instance.groups[task.group_kind];
      std::vector<Member>& there = meetings_[{task.group_kind, group, one.ordinal}];
      there.emplace_back(i, own);
      if (there.size() == program_.groups[task.group_kind][group].size()) {
        fly(there, path_of(task.group_kind, group));
      }
    }
  }

  SharedPath path_of(std::int32_t kind, std::int32_t group) const {
    const auto& paths = program_.group_paths;
    return paths.empty() || paths[kind].empty() ? SharedPath{} : paths[kind][group];
  }

  std::int64_t length(std::int32_t i, const Work& work) const {
    const FactorSet& set = program_.factor_sets[program_.instances[i].factor_set];
    return duration_of(work, set.base).count();
  }

  void fly(const std::vector<Member>& members, const SharedPath& path) {
    std::int64_t whole = -1;
    std::int64_t latency = 0;
    for (const auto& [i, own] : members) {
      Work first{};
      constexpr auto kLatency = static_cast<std::size_t>(Resource::kLatency);
      first[kLatency] = tasks_[i][own].task->work[kLatency];
      const std::pair known(whole, latency);
      std::tie(whole, latency) =
          std::max(known, {length(i, tasks_[i][own].task->work), length(i, first)});
    }
    if (path.uses.empty() || whole == latency) {
      for (const auto& [i, own] : members) {
        ends_[i][own] = clock_ + whole;
      }
      return;
    }
    flights_.add(flying_.size(), path, clock_ + latency, whole - latency);
    flying_.push_back(members);
  }

  std::int64_t next_time() const {
    std::int64_t next = kNever;
    const auto may_be = [this, &next](std::int64_t time) {
      next = time > clock_ ? std::min(next, time) : next;
    };
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      for (std::size_t t = 0; t < tasks_[i].size(); ++t) {
        may_be(ends_[i][t]);
        may_be(launch(tasks_[i][t]));
      }
    }
    if (!flights_.empty()) {
      may_be(std::max(flights_.next(), clock_ + 1));  // a rounding after now is not now
    }
    return next;
  }

  const Program& program_;
  std::vector<std::vector<Listed>> tasks_;                       ///< [instance][task]
  std::vector<std::vector<std::vector<std::int32_t>>> streams_;  ///< [instance][stream]
  std::vector<std::vector<std::size_t>> heads_;
  std::vector<std::vector<std::int64_t>> ends_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<Member>> meetings_;
  ClockFlights flights_;
  std::vector<std::vector<Member>> flying_;  ///< by flight
  std::int64_t clock_ = -1;
};

}  // namespace foretrain
