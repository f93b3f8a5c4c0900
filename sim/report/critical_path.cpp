#include "foretrain/report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

/// The chain of tasks that the last measured step hangs on, walked back from its end: every task on
/// it starts at the instant the one before it ends (or when the host launches it).
namespace foretrain {
namespace {

/// One executed task: its instance and its template-wide index.
struct Node {
  std::int32_t instance = 0;
  std::int32_t task = 0;
};

/// Static facts of a template: which block task an index means, and what precedes it.
struct TemplateIndex {
  std::vector<std::int32_t> call_of;             ///< per task
  std::vector<std::int32_t> stream_predecessor;  ///< per task; -1: first on its stream
  std::map<std::int32_t, std::int32_t> send_of;  ///< message -> task
};

const Task& task_at(const Program& program, const Call& call, std::int32_t index) {
  return program.blocks[static_cast<std::size_t>(call.block)]
      .tasks[static_cast<std::size_t>(index - call.first_task)];
}

TemplateIndex index_template(const Program& program, const Template& body) {
  TemplateIndex index;
  std::vector<std::int32_t> latest(program.streams.size(), -1);
  for (std::size_t c = 0; c < body.calls.size(); ++c) {
    const Call& call = body.calls[c];
    const Block& block = program.blocks[static_cast<std::size_t>(call.block)];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const std::int32_t self = call.first_task + static_cast<std::int32_t>(t);
      index.call_of.push_back(static_cast<std::int32_t>(c));
      index.stream_predecessor.push_back(
          std::exchange(latest[static_cast<std::size_t>(task.stream)], self));
      if (task.kind == TaskKind::kSend) {
        index.send_of[call.message] = self;
      }
    }
  }
  return index;
}

class PathWalk {
 public:
  PathWalk(const Program& program, const Timeline& timeline);
  std::vector<PathShare> shares();

 private:
  const Template& body(std::int32_t instance) const {
    return program_.templates[static_cast<std::size_t>(
        program_.instances[static_cast<std::size_t>(instance)].template_index)];
  }
  const TemplateIndex& index(std::int32_t instance) const {
    return templates_[static_cast<std::size_t>(
        program_.instances[static_cast<std::size_t>(instance)].template_index)];
  }
  const Call& call(Node node) const {
    const std::int32_t at = index(node.instance).call_of[static_cast<std::size_t>(node.task)];
    return body(node.instance).calls[static_cast<std::size_t>(at)];
  }
  const Task& task(Node node) const { return task_at(program_, call(node), node.task); }
  const Span* span(Node node) const {
    return spans_[static_cast<std::size_t>(node.instance)][static_cast<std::size_t>(node.task)];
  }
  std::string kind(const Task& task) const;
  void charge(const std::string& kind, Instant from, Instant to);
  std::optional<Node> before_start(Node node, Instant start);
  std::optional<Node> step(Node node);
  std::optional<Node> last_member(Node node) const;

  const Program& program_;
  std::vector<TemplateIndex> templates_;
  std::vector<std::vector<const Span*>> spans_;  ///< [instance][task], last step
  std::map<std::string, Duration> charged_;
  std::int32_t last_step_ = 0;
  Instant begin_{};  ///< end of the step before
  Instant end_{};
  Instant reached_{};                ///< how far back the walk has come
  std::string unrecorded_ = "wait";  ///< what the walk was waiting for where the records end
};

PathWalk::PathWalk(const Program& program, const Timeline& timeline) : program_(program) {
  for (const Template& body : program.templates) {
    templates_.push_back(index_template(program, body));
  }
  for (const Instance& instance : program.instances) {
    spans_.emplace_back(static_cast<std::size_t>(
        program.templates[static_cast<std::size_t>(instance.template_index)].task_count));
  }
  for (const Span& span : timeline.spans) {
    last_step_ = std::max(last_step_, span.step);
  }
  for (const Span& span : timeline.spans) {
    if (span.step == last_step_) {
      const Template& owner = body(span.instance);
      const Call& in = owner.calls[static_cast<std::size_t>(span.call)];
      spans_[static_cast<std::size_t>(span.instance)]
            [static_cast<std::size_t>(in.first_task + span.task)] = &span;
    }
  }
  begin_ = timeline.step_ends[timeline.step_ends.size() - 2];
  end_ = timeline.step_ends.back();
  reached_ = end_;
}

std::string PathWalk::kind(const Task& task) const {
  const Stream& stream = program_.streams[static_cast<std::size_t>(task.stream)];
  if (stream.role == StreamRole::kPrimary) {
    return program_.busy_accounts[static_cast<std::size_t>(task.account)];
  }
  return stream.role == StreamRole::kCollective
             ? program_.exposed_accounts[static_cast<std::size_t>(stream.account)]
             : "pp";
}

void PathWalk::charge(const std::string& kind, Instant from, Instant to) {
  from = std::max(from, begin_);
  to = std::min(to, reached_);
  if (to > from) {
    charged_[kind] += to - from;
    reached_ = from;
  }
}

/// The task whose end let `node` start at `start`; charges the host for a gap between them.
std::optional<Node> PathWalk::before_start(Node node, Instant start) {
  std::optional<Node> latest;
  Instant latest_end{Duration::min()};
  bool crosses_step = false;
  const auto consider = [&](std::int32_t producer) {
    const Node candidate{node.instance, producer};
    const Span* found = span(candidate);
    if (found != nullptr && found->end > latest_end) {
      latest = candidate;
      latest_end = found->end;
    }
  };
  const Call& here = call(node);
  const Template& owner = body(node.instance);
  for (std::int32_t i = 0; i < here.dependency_count; ++i) {
    const CallDependency& wait =
        owner.dependencies[static_cast<std::size_t>(here.first_dependency + i)];
    if (wait.task != node.task - here.first_task) {
      continue;
    }
    if (wait.previous_step) {
      crosses_step = true;
      unrecorded_ = kind(task({node.instance, wait.producer}));
    } else {
      consider(wait.producer);
    }
  }
  const Task& self = task(node);
  const Block& block = program_.blocks[static_cast<std::size_t>(here.block)];
  for (std::int32_t i = 0; i < self.dependency_count; ++i) {
    consider(here.first_task +
             block.dependencies[static_cast<std::size_t>(self.first_dependency + i)]);
  }
  const std::int32_t before =
      index(node.instance).stream_predecessor[static_cast<std::size_t>(node.task)];
  if (before >= 0) {
    consider(before);
  }
  if (latest && latest_end == start) {
    return latest;
  }
  if (crosses_step || !latest) {
    return std::nullopt;
  }
  charge("host", latest_end, start);
  return latest;
}

std::optional<Node> PathWalk::last_member(Node node) const {
  const Task& self = task(node);
  const Span* own = span(node);
  const Instance& instance = program_.instances[static_cast<std::size_t>(node.instance)];
  const std::int32_t group = instance.groups[static_cast<std::size_t>(self.group_kind)];
  for (const std::int32_t member : program_.groups[static_cast<std::size_t>(self.group_kind)]
                                                  [static_cast<std::size_t>(group)]) {
    // Members run the same collective at the same position of their lists; times identify it.
    for (std::size_t t = 0; t < spans_[static_cast<std::size_t>(member)].size(); ++t) {
      const Span* other = spans_[static_cast<std::size_t>(member)][t];
      const Node candidate{member, static_cast<std::int32_t>(t)};
      if (other != nullptr && other->start == own->transfer_start &&
          other->transfer_start == own->transfer_start && other->end == own->end &&
          task(candidate).group_kind == self.group_kind) {
        return candidate;
      }
    }
  }
  return std::nullopt;
}

/// Charges `node` and returns the task it hangs on.
std::optional<Node> PathWalk::step(Node node) {
  const Span* here = span(node);
  const Task& self = task(node);
  if (self.kind == TaskKind::kReceive && here->end > here->start) {
    const Instance& instance = program_.instances[static_cast<std::size_t>(node.instance)];
    const std::int32_t peer = instance.peers[static_cast<std::size_t>(self.peer_slot)];
    const auto sent = index(peer).send_of.find(call(node).message);
    if (sent != index(peer).send_of.end() && span({peer, sent->second}) != nullptr) {
      return Node{peer, sent->second};
    }
    return std::nullopt;
  }
  if (self.kind == TaskKind::kCollective) {
    charge(kind(self), here->transfer_start, here->end);
    const std::optional<Node> late = here->start == here->transfer_start ? node : last_member(node);
    return late ? before_start(*late, here->transfer_start) : std::nullopt;
  }
  charge(kind(self), here->start, here->end);
  return before_start(node, here->start);
}

std::vector<PathShare> PathWalk::shares() {
  std::optional<Node> node;
  for (std::size_t i = 0; i < program_.instances.size(); ++i) {
    const Node last{static_cast<std::int32_t>(i), body(static_cast<std::int32_t>(i)).step_end_task};
    if (span(last) != nullptr && span(last)->end == end_) {
      node = last;
      break;
    }
  }
  while (node && reached_ > begin_) {
    node = step(*node);
  }
  charge(unrecorded_, begin_, reached_);
  static constexpr const char* kKinds[] = {
      "compute", "recompute", "tp", "cp", "ep", "pp", "dp", "optimizer", "host", "wait"};
  std::vector<PathShare> shares;
  for (const char* name : kKinds) {
    const auto found = charged_.find(name);
    if (found != charged_.end()) {
      shares.push_back({name, found->second, seconds(found->second) / seconds(end_ - begin_)});
    }
  }
  return shares;
}

}  // namespace

std::vector<PathShare> critical_path(const Program& program, const Timeline& timeline) {
  if (timeline.step_ends.size() < 2 || timeline.spans.empty()) {
    return {};
  }
  return PathWalk(program, timeline).shares();
}

}  // namespace foretrain
