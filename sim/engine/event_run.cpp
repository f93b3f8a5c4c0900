#include "sim/engine/event_run.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace foretrain {
namespace {

/// What a receive waits for that nobody sends.
constexpr Executed kNever;

std::vector<UnrolledTemplate> unrolled(const Program& program) {
  std::vector<UnrolledTemplate> lists;
  for (const Template& list : program.templates) {
    lists.push_back(unroll(program, list));
  }
  return lists;
}

}  // namespace

EventRun::EventRun(const Program& program,
                   std::int32_t steps,
                   std::int32_t behind,
                   std::int64_t first_measured)
    : program_(program),
      steps_(steps),
      all_steps_(steps + behind),
      contention_(program),
      transfers_(contention_.capacities()),
      lists_(unrolled(program)),
      lengths_(program, lists_, all_steps_, first_measured) {
  for (const Instance& instance : program.instances) {
    first_task_.push_back(tasks_);
    tasks_ += lists_[instance.template_index].tasks.size();
  }
  left_ = static_cast<std::int64_t>(tasks_) * steps;
  log_.resize(all_steps_);
  enter_step(0);
  heads_.assign(program.instances.size(), std::vector<StreamHead>(program.streams.size()));
  for (const auto& groups : program.groups) {
    gathering_.emplace_back(groups.size());
  }
  std::size_t paths = 0;
  for (const std::vector<SharedPath>& kind : program.group_paths) {
    first_path_.push_back(paths);
    paths += kind.size();
  }
  first_path_.push_back(paths);
  paths += program.instances.size() * kPeerSlots;
  sent_.assign(all_steps_, std::vector<std::int64_t>(paths, 0));
  is_touched_.assign(program.instances.size(), false);
}

bool EventRun::run() {
  for (std::size_t i = 0; i < program_.instances.size(); ++i) {
    touch(static_cast<std::int32_t>(i));
  }
  // Whatever is not known yet waits for the end of a transfer that is: nothing earlier can turn up.
  constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();
  for (advance_touched(); left_ > 0; advance_touched()) {
    const std::optional<Instant> ending = transfers_.next_end();
    const std::int64_t end = ending ? ending->time_since_epoch().count() : kNotYet;
    const std::int64_t begin = begins_.empty() ? kNotYet : begins_.top().time;
    const std::int64_t later = later_.empty() ? kNotYet : later_.top().time;
    now_ = std::min({later, begin, end});
    if (now_ == kNotYet) {
      return false;
    }
    if (now_ == later) {
      take_later();
    } else if (now_ == end) {
      end_flights();
    } else {
      begin_flights();
    }
  }
  return true;
}

void EventRun::enter_step(std::int32_t step) {
  if (step < all_steps_ && log_[step].empty()) {
    log_[step].resize(tasks_);
  }
}

void EventRun::touch(std::int32_t instance) {
  if (!is_touched_[instance]) {
    is_touched_[instance] = true;
    touched_.push_back(instance);
  }
}

void EventRun::advance_touched() {
  while (!touched_.empty()) {
    const std::int32_t instance = touched_.back();
    touched_.pop_back();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < program_.streams.size(); ++s) {
        moved = advance(instance, static_cast<std::int32_t>(s)) || moved;
      }
    }
    is_touched_[instance] = false;
  }
}

/// As far as it can go. False: not at all.
bool EventRun::advance(std::int32_t instance, std::int32_t stream) {
  StreamHead& head = heads_[instance][stream];
  const std::vector<std::int32_t>& order = list_of(instance).streams[stream];
  bool moved = false;
  while (!order.empty() && !head.busy && !head.put_off && head.step < all_steps_) {
    const std::int32_t index = order[head.position];
    const std::int64_t now = start_of_next(instance, head, index);
    if (now < 0) {
      break;
    }
    if (head.step >= steps_ && now > now_) {
      head.put_off = true;
      later_.push({now, instance, stream});
      break;
    }
    head.busy = true;
    start({instance, head.step, index}, now);
    moved = true;
  }
  return moved;
}

std::int64_t EventRun::start_of_next(std::int32_t instance,
                                     StreamHead& head,
                                     std::int32_t index) const {
  if (head.awaited != nullptr && head.awaited->end < 0) {
    return -1;
  }
  std::int64_t start = head.clock;
  const auto has_ended = [&head](const Executed& other) {
    head.awaited = other.end < 0 ? &other : nullptr;
    return other.end >= 0;
  };
  const UnrolledTemplate& list = list_of(instance);
  const UnrolledTask& task = list.tasks[index];
  for (const CallDependency& wait : list.waits_of(task)) {
    const std::int32_t step = head.step - (wait.previous_step ? 1 : 0);
    if (step < 0) {
      continue;
    }
    const Executed& producer = executed(step, instance, wait.producer);
    if (!has_ended(producer)) {
      return -1;
    }
    start = std::max(start, producer.end);
  }
  if (list.host_bound) {
    std::int64_t base = 0;
    if (list.host_sync >= 0 && head.step > 0) {
      const Executed& sync = executed(head.step - 1, instance, list.host_sync);
      if (!has_ended(sync)) {
        return -1;
      }
      base = sync.end;
    }
    start = std::max(start, base + task.launch);
  }
  const bool receives = task.task->kind == TaskKind::kReceive;
  return receives && !has_ended(matching_send({instance, head.step, index})) ? -1 : start;
}

const Executed& EventRun::matching_send(const Member& receive) const {
  const UnrolledTask& task = list_of(receive.instance).tasks[receive.task];
  const std::int32_t peer = program_.instances[receive.instance].peers[task.task->peer_slot];
  const auto sent = list_of(peer).sends.find(task.call->message);
  return sent == list_of(peer).sends.end() ? kNever : executed(receive.step, peer, sent->second);
}

void EventRun::start(const Member& member, std::int64_t now) {
  const Task& task = *list_of(member.instance).tasks[member.task].task;
  Executed& own = entry(member);
  own.start = now;
  own.begin = now;
  switch (task.kind) {
    case TaskKind::kLocal:
      complete(member, now + length(member).whole);
      break;
    case TaskKind::kReceive:
      complete(member, std::max(now, matching_send(member).end));
      break;
    case TaskKind::kSend:
      transfer(length(member),
               path_of_send(member.instance, task.peer_slot),
               now,
               std::span(&member, 1));
      break;
    case TaskKind::kCollective:
      arrive(member);
      break;
  }
}

void EventRun::arrive(const Member& member) {
  const UnrolledTask& task = list_of(member.instance).tasks[member.task];
  const std::int32_t kind = task.task->group_kind;
  const std::int32_t group = program_.instances[member.instance].groups[kind];
  const std::size_t size = program_.groups[kind][group].size();
  if (size == 1) {
    meet(kind, group, std::span(&member, 1));
    return;
  }
  std::vector<Gathering>& open = gathering_[kind][group];
  auto there = std::find_if(open.begin(), open.end(), [&](const Gathering& one) {
    return one.step == member.step && one.ordinal == task.ordinal;
  });
  if (there == open.end()) {
    there = open.insert(open.end(), {member.step, task.ordinal, {}});
  }
  there->members.push_back(member);
  if (there->members.size() == size) {
    const std::vector<Member> members = std::move(there->members);
    *there = std::move(open.back());
    open.pop_back();
    meet(kind, group, members);
  }
}

/// All members are there.
void EventRun::meet(std::int32_t kind, std::int32_t group, std::span<const Member> members) {
  Length longest;
  std::int64_t now = 0;
  for (const Member& one : members) {
    longest = std::max(longest, length(one));
    now = std::max(now, entry(one).start);
  }
  for (const Member& one : members) {
    entry(one).begin = now;
  }
  transfer(longest, path_of_group(kind, group), now, members);
}

/// Latency passes first; what is left shares links, where some can fill. What moves over them is
/// told by that time alone, however long it takes.
void EventRun::transfer(const Length& length,
                        const Path& path,
                        std::int64_t now,
                        std::span<const Member> members) {
  const std::int64_t alone = length.whole - length.latency;
  if (path.whole != nullptr) {
    sent_[members.front().step][path.number] += length.unslowed;
  }
  if (path.whole == nullptr || path.contended->empty() || alone == 0) {
    for (const Member& one : members) {
      complete(one, now + length.whole);
    }
    return;
  }
  if (free_flights_.empty()) {
    free_flights_.push_back(flights_.size());
    flights_.emplace_back();
  }
  const std::size_t number = free_flights_.back();
  free_flights_.pop_back();
  Flight& flight = flights_[number];
  flight.uses = path.contended;
  // Slowed by kernels it moves the same bytes and asks for less of its links.
  flight.limit =
      path.whole->limit * (static_cast<double>(length.unslowed) / static_cast<double>(alone));
  flight.alone = Duration{alone};
  flight.members.assign(members.begin(), members.end());
  begins_.push({now + length.latency, sequence_++, number});
}

void EventRun::take_later() {
  for (; !later_.empty() && later_.top().time == now_; later_.pop()) {
    const Later& one = later_.top();
    heads_[one.instance][one.stream].put_off = false;
    touch(one.instance);
  }
}

void EventRun::begin_flights() {
  for (; !begins_.empty() && begins_.top().time == now_; begins_.pop()) {
    const std::size_t number = begins_.top().flight;
    const Flight& flight = flights_[number];
    transfers_.begin(Instant{Duration{now_}},
                     *flight.uses,
                     flight.limit,
                     flight.alone,
                     static_cast<std::int64_t>(number));
  }
}

void EventRun::end_flights() {
  for (const std::int64_t tag : transfers_.take_ended(Instant{Duration{now_}})) {
    const auto number = static_cast<std::size_t>(tag);
    for (const Member& member : flights_[number].members) {
      complete(member, now_);
    }
    free_flights_.push_back(number);
  }
}

void EventRun::complete(const Member& member, std::int64_t end) {
  const UnrolledTemplate& list = list_of(member.instance);
  const UnrolledTask& task = list.tasks[member.task];
  entry(member).end = end;
  left_ -= member.step < steps_ ? 1 : 0;
  StreamHead& head = heads_[member.instance][task.task->stream];
  head.busy = false;
  head.clock = end;
  if (++head.position == static_cast<std::int32_t>(list.streams[task.task->stream].size())) {
    head.position = 0;
    enter_step(++head.step);
  }
  touch(member.instance);
  if (task.task->kind == TaskKind::kSend) {
    touch(program_.instances[member.instance].peers[task.task->peer_slot]);
  }
}

EventRun::Path EventRun::path_of_group(std::int32_t kind, std::int32_t group) const {
  if (program_.group_paths.empty() || program_.group_paths[kind].empty()) {
    return {};
  }
  return {&program_.group_paths[kind][group],
          &contention_.of_group(kind, group),
          first_path_[kind] + static_cast<std::size_t>(group)};
}

EventRun::Path EventRun::path_of_send(std::int32_t instance, std::int32_t slot) const {
  return {&program_.instances[instance].paths[slot],
          &contention_.of_send(instance, slot),
          first_path_.back() + static_cast<std::size_t>(instance * kPeerSlots + slot)};
}

std::vector<double> EventRun::link_bytes(std::int32_t step) const {
  std::vector<double> bytes(program_.links.size(), 0.0);
  const auto add = [&bytes, &sent = sent_[step]](const SharedPath& path, std::size_t number) {
    const double once = path.limit * 1e-12 * static_cast<double>(sent[number]);
    for (const LinkUse& use : path.uses) {
      bytes[use.link] += use.weight * once;
    }
  };
  for (std::size_t kind = 0; kind < program_.group_paths.size(); ++kind) {
    for (std::size_t group = 0; group < program_.group_paths[kind].size(); ++group) {
      add(program_.group_paths[kind][group], first_path_[kind] + group);
    }
  }
  for (std::size_t i = 0; i < program_.instances.size(); ++i) {
    for (std::size_t slot = 0; slot < kPeerSlots; ++slot) {
      add(program_.instances[i].paths[slot], first_path_.back() + i * kPeerSlots + slot);
    }
  }
  return bytes;
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
