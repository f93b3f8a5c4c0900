#include "sim/engine/event_run.h"

#include "sim/program/stretch.h"

#include <algorithm>

namespace foretrain {

UnrolledTemplate unroll(const Program& program, const Template& list) {
  UnrolledTemplate result;
  result.streams.resize(program.streams.size());
  std::vector<std::int32_t> issued(program.group_kinds.size(), 0);
  for (std::size_t c = 0; c < list.calls.size(); ++c) {
    const Call& call = list.calls[c];
    const Block& block = program.blocks[call.block];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const auto own = static_cast<std::int32_t>(result.tasks.size());
      UnrolledTask entry{
          &task, &call, static_cast<std::int32_t>(c), static_cast<std::int32_t>(t), -1, {}};
      if (task.kind == TaskKind::kCollective) {
        entry.ordinal = issued[task.group_kind]++;
      } else if (task.kind == TaskKind::kSend) {
        result.sends[call.message] = own;
      } else if (task.kind == TaskKind::kReceive) {
        result.receives[call.message] = own;
      }
      for (std::int32_t d = 0; d < task.dependency_count; ++d) {
        const std::int32_t local = block.dependencies[task.first_dependency + d];
        entry.dependencies.push_back({0, call.first_task + local, false});
      }
      result.streams[task.stream].push_back(own);
      result.tasks.push_back(std::move(entry));
    }
    for (std::int32_t d = 0; d < call.dependency_count; ++d) {
      const CallDependency& dependency = list.dependencies[call.first_dependency + d];
      result.tasks[call.first_task + dependency.task].dependencies.push_back(dependency);
    }
  }
  return result;
}

EventRun::EventRun(const Program& program, std::int32_t steps, std::int64_t first_measured)
    : program_(program),
      steps_(steps),
      contention_(program),
      transfers_(contention_.capacities()),
      link_bytes_(steps, std::vector<double>(program.links.size(), 0.0)) {
  for (const Template& list : program.templates) {
    lists_.push_back(unroll(program, list));
  }
  for (std::int32_t step = 0; step < steps; ++step) {
    factors_.emplace_back();
    for (const FactorSet& set : program.factor_sets) {
      factors_.back().push_back(factors_at(set, step - first_measured));
    }
  }
  std::size_t tasks = 0;
  for (const Instance& instance : program.instances) {
    first_task_.push_back(tasks);
    tasks += lists_[instance.template_index].tasks.size();
  }
  log_.assign(steps, std::vector<Executed>(tasks));
  done_.assign(tasks, 0);
  receiving_.assign(tasks, -1);
  heads_.assign(program.instances.size(), std::vector<StreamHead>(program.streams.size()));
  is_touched_.assign(program.instances.size(), false);
  left_ = static_cast<std::int64_t>(tasks) * steps;
  know_lengths();
}

bool EventRun::run() {
  for (std::size_t i = 0; i < program_.instances.size(); ++i) {
    touch(static_cast<std::int32_t>(i));
  }
  start_what_can_start();
  for (std::int64_t next = next_instant(); next >= 0; next = next_instant()) {
    now_ = next;
    retire_transfers();
    retire_instant();
    start_what_can_start();
  }
  return left_ == 0;
}

/// When something happens next; -1: never.
std::int64_t EventRun::next_instant() {
  const std::optional<Instant> ends = transfers_.next_end();
  const std::int64_t transfer = ends ? ends->time_since_epoch().count() : -1;
  if (queue_.empty()) {
    return transfer;
  }
  return transfer < 0 ? queue_.top().time : std::min(transfer, queue_.top().time);
}

void EventRun::retire_transfers() {
  if (transfers_.next_end() == Instant{Duration{now_}}) {
    for (const std::int64_t meeting : transfers_.take_ended(Instant{Duration{now_}})) {
      complete_all(static_cast<std::size_t>(meeting));
    }
  }
}

void EventRun::complete_all(std::size_t meeting) {
  for (const Member& member : meetings_[meeting]) {
    complete(member);
  }
  meetings_[meeting].clear();
  free_meetings_.push_back(meeting);
}

void EventRun::push(Event event) {
  event.sequence = sequence_++;
  queue_.push(event);
}

void EventRun::retire_instant() {
  while (!queue_.empty() && queue_.top().time == now_) {
    const Event event = queue_.top();
    queue_.pop();
    switch (event.kind) {
      case EventKind::kTaskEnd:
        complete({event.instance, event.step, event.task});
        break;
      case EventKind::kMeetingEnd:
        complete_all(event.meeting);
        break;
      case EventKind::kTransferBegin: {
        const Flight& flight = flights_[event.meeting];
        transfers_.begin(Instant{Duration{now_}},
                         *flight.uses,
                         flight.limit,
                         flight.alone,
                         static_cast<std::int64_t>(event.meeting));
        break;
      }
      case EventKind::kLaunch:
        heads_[event.instance][event.task].launch_scheduled = false;
        touch(event.instance);
        break;
    }
  }
}

void EventRun::start_what_can_start() {
  std::sort(touched_.begin(), touched_.end());
  for (const std::int32_t instance : touched_) {
    is_touched_[instance] = false;
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      try_start(instance, static_cast<std::int32_t>(s));
    }
  }
  touched_.clear();
}

void EventRun::touch(std::int32_t instance) {
  if (!is_touched_[instance]) {
    is_touched_[instance] = true;
    touched_.push_back(instance);
  }
}

void EventRun::try_start(std::int32_t instance, std::int32_t stream) {
  StreamHead& head = heads_[instance][stream];
  if (head.busy || head.launch_scheduled || head.step == steps_ || still_unmet(instance, head)) {
    return;
  }
  const std::vector<std::int32_t>& order = list_of(instance).streams[stream];
  if (order.empty()) {
    return;
  }
  const std::int32_t index = order[head.position];
  const UnrolledTask& task = list_of(instance).tasks[index];
  head.unmet = unmet_dependency(instance, head.step, task);
  if (head.unmet.producer >= 0) {
    return;
  }
  const std::int64_t launch = launch_time(instance, head.step, task);
  if (launch > now_) {
    head.launch_scheduled = true;
    push({launch, EventKind::kLaunch, 0, instance, head.step, stream, 0});
    return;
  }
  head.busy = true;
  start({instance, head.step, index});
}

EventRun::Unmet EventRun::unmet_dependency(std::int32_t instance,
                                           std::int32_t step,
                                           const UnrolledTask& task) const {
  const std::size_t first = first_task_[instance];
  for (const CallDependency& dependency : task.dependencies) {
    const std::int32_t needed = dependency.previous_step ? step : step + 1;
    if (done_[first + dependency.producer] < needed) {
      return {dependency.producer, needed};
    }
  }
  const std::int32_t sync =
      program_.templates[program_.instances[instance].template_index].host_sync_task;
  return sync < 0 || done_[first + sync] >= step ? Unmet{} : Unmet{sync, step};
}

std::int64_t EventRun::launch_time(std::int32_t instance,
                                   std::int32_t step,
                                   const UnrolledTask& task) const {
  const std::int32_t sync =
      program_.templates[program_.instances[instance].template_index].host_sync_task;
  const std::int64_t base = sync < 0 || step == 0 ? 0 : executed(step - 1, instance, sync).end;
  return base + (task.call->launch_offset + task.task->launch_offset).count();
}

void EventRun::start(const Member& member) {
  const Task& task = *list_of(member.instance).tasks[member.task].task;
  entry(member).start = now_;
  entry(member).begin = now_;
  switch (task.kind) {
    case TaskKind::kSend:
      transfer(length(member),
               &program_.instances[member.instance].paths[task.peer_slot],
               contention_.of_send(member.instance, task.peer_slot),
               {member});
      break;
    case TaskKind::kLocal:
      push({now_ + length(member).whole,
            EventKind::kTaskEnd,
            0,
            member.instance,
            member.step,
            member.task,
            0});
      break;
    case TaskKind::kReceive:
      start_receive(member);
      break;
    case TaskKind::kCollective:
      arrive(member);
      break;
  }
}

void EventRun::start_receive(const Member& member) {
  const UnrolledTask& task = list_of(member.instance).tasks[member.task];
  const std::int32_t peer = program_.instances[member.instance].peers[task.task->peer_slot];
  const auto sent = list_of(peer).sends.find(task.call->message);
  if (sent != list_of(peer).sends.end() && done_[first_task_[peer] + sent->second] > member.step) {
    push({now_, EventKind::kTaskEnd, 0, member.instance, member.step, member.task, 0});
  } else {
    receiving_[first_task_[member.instance] + member.task] = member.step;
  }
}

void EventRun::arrive(const Member& member) {
  const UnrolledTask& task = list_of(member.instance).tasks[member.task];
  const std::int32_t kind = task.task->group_kind;
  const std::int32_t group = program_.instances[member.instance].groups[kind];
  if (program_.groups[kind][group].size() == 1) {
    meet(kind, group, {member});
    return;
  }
  const MeetingKey key{kind, group, member.step, task.ordinal};
  std::vector<Member>& there = gathering_[key];
  there.push_back(member);
  if (there.size() < program_.groups[kind][group].size()) {
    return;
  }
  std::vector<Member> members = std::move(there);
  gathering_.erase(key);
  meet(kind, group, std::move(members));
}

void EventRun::meet(std::int32_t kind, std::int32_t group, std::vector<Member> members) {
  Length longest;
  for (const Member& one : members) {
    longest = std::max(longest, length(one));
    entry(one).begin = now_;
  }
  const bool alone = program_.group_paths.empty() || program_.group_paths[kind].empty();
  transfer(longest,
           alone ? nullptr : &program_.group_paths[kind][group],
           contention_.of_group(kind, group),
           std::move(members));
}

/// All members are there. Latency passes first; what is left shares links, where some can fill.
void EventRun::transfer(const Length& length,
                        const SharedPath* path,
                        const std::vector<LinkUse>& contended,
                        std::vector<Member> members) {
  const std::int64_t alone = length.whole - length.latency;
  if (path != nullptr) {
    count_bytes(*path, members.front().step, length.unslowed);
  }
  if (free_meetings_.empty()) {
    free_meetings_.push_back(meetings_.size());
    meetings_.emplace_back();
    flights_.emplace_back();
  }
  const std::size_t meeting = free_meetings_.back();
  free_meetings_.pop_back();
  meetings_[meeting] = std::move(members);
  if (contended.empty() || alone == 0) {
    push({now_ + length.whole, EventKind::kMeetingEnd, 0, 0, 0, 0, meeting});
    return;
  }
  // Slowed by kernels it moves the same bytes and asks for less of its links.
  const double slowed = static_cast<double>(length.unslowed) / static_cast<double>(alone);
  flights_[meeting] = {&contended, path->limit * slowed, Duration{alone}};
  push({now_ + length.latency, EventKind::kTransferBegin, 0, 0, 0, 0, meeting});
}

/// What a transfer moves is told by its time alone, however long it takes.
void EventRun::count_bytes(const SharedPath& path, std::int32_t step, std::int64_t unslowed) {
  const double bytes = path.limit * 1e-12 * static_cast<double>(unslowed);
  for (const LinkUse& use : path.uses) {
    link_bytes_[step][use.link] += use.weight * bytes;
  }
}

EventRun::Length EventRun::length(const Member& member) const {
  const Instance& instance = program_.instances[member.instance];
  const std::vector<Length>& known = lengths_[instance.template_index][instance.factor_set];
  if (!known.empty()) {
    return known[member.task];
  }
  return length_of(list_of(member.instance).tasks[member.task],
                   factors_[member.step][instance.factor_set]);
}

EventRun::Length EventRun::length_of(const UnrolledTask& unrolled, const Factors& factors) {
  const Task& task = *unrolled.task;
  Work latency{};
  constexpr auto kLatency = static_cast<std::size_t>(Resource::kLatency);
  latency[kLatency] = task.work[kLatency];
  const std::int64_t whole = duration_of(task.work, factors).count();
  const std::int64_t first = duration_of(latency, factors).count();
  return {stretched(whole, stretch_of(stretches_of(*unrolled.call), task)), first, whole - first};
}

/// Of every task that some instance runs at factors that never change.
void EventRun::know_lengths() {
  const std::size_t sets = program_.factor_sets.size();
  lengths_.assign(lists_.size(), std::vector<std::vector<Length>>(sets));
  for (const Instance& instance : program_.instances) {
    const FactorSet& set = program_.factor_sets[instance.factor_set];
    std::vector<Length>& known = lengths_[instance.template_index][instance.factor_set];
    if (!set.windows.empty() || !known.empty()) {
      continue;
    }
    for (const UnrolledTask& task : lists_[instance.template_index].tasks) {
      known.push_back(length_of(task, set.base));
    }
  }
}

void EventRun::complete(const Member& member) {
  const UnrolledTemplate& list = list_of(member.instance);
  const UnrolledTask& task = list.tasks[member.task];
  entry(member).end = now_;
  ++done_[first_task_[member.instance] + member.task];
  --left_;
  StreamHead& head = heads_[member.instance][task.task->stream];
  head.busy = false;
  if (++head.position == static_cast<std::int32_t>(list.streams[task.task->stream].size())) {
    head.position = 0;
    ++head.step;
  }
  touch(member.instance);
  if (task.task->kind != TaskKind::kSend) {
    return;
  }
  const std::int32_t peer = program_.instances[member.instance].peers[task.task->peer_slot];
  const auto received = list_of(peer).receives.find(task.call->message);
  if (received == list_of(peer).receives.end()) {
    return;
  }
  std::int32_t& waiting = receiving_[first_task_[peer] + received->second];
  if (waiting == member.step) {
    waiting = -1;
    push({now_, EventKind::kTaskEnd, 0, peer, member.step, received->second, 0});
  }
}

std::vector<std::vector<std::int32_t>> EventRun::progress() const {
  std::vector<std::vector<std::int32_t>> result;
  for (std::size_t i = 0; i < program_.instances.size(); ++i) {
    const UnrolledTemplate& list = list_of(static_cast<std::int32_t>(i));
    std::vector<std::int32_t> done;
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      const StreamHead& head = heads_[i][s];
      const auto all = static_cast<std::int32_t>(list.streams[s].size());
      done.push_back(head.step > 0 ? all : head.position);
    }
    result.push_back(std::move(done));
  }
  return result;
}

}  // namespace foretrain
