#include "foretrain/report.h"
#include "sim/report/trace_events.h"

#include <algorithm>
#include <array>

namespace foretrain {
namespace {

/// Where the pids and arrows of a part begin.
struct PartOffsets {
  std::int64_t pid = 0, arrow = 0;
};

std::int64_t first_rank(const TracePart& part) {
  const std::vector<Span>& spans = part.timeline->spans;
  return spans.empty()
             ? 0
             : part.program->instances[static_cast<std::size_t>(spans.front().instance)].rank;
}

void write_header(const TraceOptions& options, std::int64_t rank, TraceText& text) {
  text << "{\n \"schemaVersion\": 1,\n \"deviceProperties\": [{\"id\": 0, \"name\": "
       << json_string(options.gpu_name) << ", \"totalGlobalMem\": ";
  text.integer(options.gpu_memory)
      << "}],\n \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": ";
  text.integer(rank) << ", \"world_size\": ";
  text.integer(options.world_size)
      << "},\n \"displayTimeUnit\": \"ms\",\n \"baseTimeNanoseconds\": 0,\n \"metadata\": "
      << object_or_empty(options.metadata_json) << ",\n \"traceEvents\": [";
}

/// Writes one run's events: every recorded instance's tracks (MODEL 8.4).
class TraceWriter {
 public:
  TraceWriter(const TracePart& part, int steps, PartOffsets offsets, bool any, TraceText& text)
      : view_(*part.program, *part.timeline, steps),
        names_(*part.program),
        arrows_(view_),
        part_(part),
        offsets_(offsets),
        text_(text),
        any_(any) {}

  void write() {
    const std::vector<Span>& spans = view_.timeline.spans;
    const Span* const last = spans.data() + spans.size();
    for (const Span* first = spans.data(); first != last;) {
      const Span* end = std::find_if(
          first, last, [&](const Span& span) { return span.instance != first->instance; });
      write_instance(first, end);
      first = end;
    }
  }
  std::int64_t arrows() const { return arrows_.count(); }

 private:
  struct ActionSpan {
    std::int64_t start = -1, end = -1;
  };

  const Instance& instance(const Span& span) const {
    return view_.program.instances[static_cast<std::size_t>(span.instance)];
  }
  const Template& list(const Span& span) const {
    return view_.program.templates[static_cast<std::size_t>(instance(span).template_index)];
  }
  std::int64_t stream_track(std::int32_t stream) const { return stream + 1; }
  std::int64_t action_track() const {
    return static_cast<std::int64_t>(view_.program.streams.size()) + 1;
  }
  std::int64_t step_track() const { return action_track() + 1; }

  /// Opens an event up to its pid and tid, which every event has.
  void begin_event(std::string_view start, std::int64_t rank, std::int64_t track) {
    text_ << (any_ ? ",\n{" : "\n{") << start << ",\"pid\":";
    text_.integer(offsets_.pid + rank) << ",\"tid\":";
    text_.integer(track);
    any_ = true;
  }

  void write_name(std::string_view what,
                  std::int64_t rank,
                  std::int64_t track,
                  std::string_view name) {
    text_ << (any_ ? ",\n{" : "\n{") << "\"ph\":\"M\",\"name\":\"" << what << "_name\",\"pid\":";
    text_.integer(offsets_.pid + rank) << ",\"tid\":";
    text_.integer(track) << ",\"args\":{\"name\":" << name << "}}";
    any_ = true;
  }

  void write_sort_index(std::string_view what,
                        std::int64_t rank,
                        std::int64_t track,
                        std::int64_t index) {
    text_ << ",\n{\"ph\":\"M\",\"name\":\"" << what << "_sort_index\",\"pid\":";
    text_.integer(offsets_.pid + rank) << ",\"tid\":";
    text_.integer(track) << ",\"args\":{\"sort_index\":";
    text_.integer(index) << "}}";
  }

  void write_track(std::int64_t rank,
                   std::int64_t track,
                   std::string_view name,
                   std::int64_t index) {
    write_name("thread", rank, track, name);
    write_sort_index("thread", rank, track, index);
  }

  bool drawn(const Span& span) const {
    return view_.shows(span) &&
           (span.end > span.start ||
            (view_.task(span).kind == TaskKind::kReceive && arrows_.id(span) != 0));
  }

  void write_instance(const Span* first, const Span* last) {
    const std::int64_t rank = instance(*first).rank;
    write_name(
        "process",
        rank,
        step_track(),
        json_string((part_.label.empty() ? "" : part_.label + " · ") + "rank " +
                    std::to_string(rank) + " (pp " + std::to_string(list(*first).stage) + ")"));
    write_sort_index("process", rank, step_track(), offsets_.pid + rank);
    write_track(rank, step_track(), "\"steps\"", 0);
    write_track(rank, action_track(), "\"actions\"", 1);
    std::vector<bool> used(view_.program.streams.size(), false);
    for (const Span* span = first; span != last; ++span) {
      if (drawn(*span)) {
        used[static_cast<std::size_t>(view_.task(*span).stream)] = true;
      }
    }
    for (std::size_t stream = 0; stream < used.size(); ++stream) {
      if (used[stream]) {
        const std::int64_t track = stream_track(static_cast<std::int32_t>(stream));
        write_track(rank, track, names_.streams[stream], track + 1);
      }
    }
    write_steps(first, last);
    write_actions(first, last);
    for (const Span* span = first; span != last; ++span) {
      if (drawn(*span)) {
        write_slice(*span);
      }
    }
    write_memory(first, last);
  }

  void write_times(std::int64_t start, std::int64_t end) {
    text_ << ",\"ts\":";
    text_.micros(start) << ",\"dur\":";
    text_.micros(end - start);
  }

  /// One slice a step, from the end of the step before to its own end.
  void write_steps(const Span* first, const Span* last) {
    const auto index = static_cast<std::size_t>(first->instance);
    const auto& all_ends = view_.timeline.instance_step_ends;
    const bool known =
        index < all_ends.size() && all_ends[index].size() > static_cast<std::size_t>(view_.steps);
    std::int64_t start = known ? trace_time(all_ends[index].front(), view_.zero) : 0;
    for (int step = 0; step < view_.steps; ++step) {
      std::int64_t end = start;
      if (known) {
        end = trace_time(all_ends[index][static_cast<std::size_t>(step) + 1], view_.zero);
      } else {
        std::for_each(first, last, [&](const Span& span) {
          end = span.step == step ? std::max(end, view_.end(span)) : end;
        });
      }
      begin_event("\"ph\":\"X\",\"cat\":\"user_annotation\"", instance(*first).rank, step_track());
      text_ << ",\"name\":\"ProfilerStep#";
      text_.integer(step + 1) << "\"";
      write_times(start, end);
      text_ << "}";
      start = end;
    }
  }

  /// One slice a call: the time from its first to its last kernel on the primary stream.
  void write_actions(const Span* first, const Span* last) {
    const std::size_t calls = list(*first).calls.size();
    std::vector<ActionSpan> actions(calls * static_cast<std::size_t>(view_.steps));
    const auto place = [&](const Span& span) {
      return static_cast<std::size_t>(span.step) * calls + static_cast<std::size_t>(span.call);
    };
    for (const Span* span = first; span != last; ++span) {
      if (!view_.shows(*span) || span->end == span->start || view_.task(*span).stream != 0) {
        continue;
      }
      ActionSpan& action = actions[place(*span)];
      action.start = action.start < 0 ? view_.start(*span) : action.start;
      action.end = view_.end(*span);
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].start < 0) {
        continue;
      }
      begin_event(
          "\"ph\":\"X\",\"cat\":\"gpu_user_annotation\"", instance(*first).rank, action_track());
      text_ << ",\"name\":";
      write_action_name(list(*first).calls[i % calls]);
      write_times(actions[i].start, readable_end(actions[i].start, actions[i].end));
      text_ << "}";
    }
  }

  /// Readers add ts and dur as doubles; where that passes the end, an action that follows at once
  /// would seem to overlap this one and viewers leave it out: then a nanosecond less. Kernels keep
  /// their exact times.
  static std::int64_t readable_end(std::int64_t start, std::int64_t end) {
    const auto micros = [](std::int64_t nanoseconds) {
      return static_cast<double>(nanoseconds) / 1000;
    };
    return micros(start) + micros(end - start) > micros(end) ? end - 1 : end;
  }

  /// "3F5", or the block's name for what is no pipeline action.
  void write_action_name(const Call& call) {
    if (call.label >= 0) {
      text_ << names_.labels[static_cast<std::size_t>(call.label)];
      return;
    }
    const auto block = static_cast<std::size_t>(call.block);
    const char letter = names_.action_letters[block];
    if (letter == '\0' || call.stage < 0 || call.micro_batch < 0) {
      text_ << names_.blocks[block];
      return;
    }
    text_ << "\"";
    text_.integer(call.stage) << std::string_view(&letter, 1);
    text_.integer(call.micro_batch) << "\"";
  }

  void write_slice(const Span& span) {
    const Task& task = view_.task(span);
    const auto label = static_cast<std::size_t>(task.label);
    begin_event("\"ph\":\"X\",\"cat\":\"kernel\"", instance(span).rank, stream_track(task.stream));
    text_ << ",\"name\":";
    if (task.kind == TaskKind::kLocal) {
      text_ << names_.labels[label];
    } else if (task.kind == TaskKind::kCollective) {
      text_ << names_.collectives[label].kernel;
    } else {
      text_ << "\"ncclDevKernel_SendRecv\"";
    }
    write_times(view_.start(span), view_.end(span));
    text_ << ",\"args\":{\"step\":";
    text_.integer(span.step + 1) << ",\"action\":";
    write_action_name(view_.call(span));
    if (view_.call(span).micro_batch >= 0) {
      text_ << ",\"micro_batch\":";
      text_.integer(view_.call(span).micro_batch);
    }
    write_work(span, task);
    text_ << "}}";
    write_arrow(span, task);
  }

  void write_work(const Span& span, const Task& task) {
    if (task.flops != 0) {
      text_ << ",\"flops\":";
      text_.integer(task.flops);
    }
    if (task.bytes != 0) {
      text_ << ",\"bytes\":";
      text_.integer(task.bytes);
    }
    if (task.kind == TaskKind::kCollective) {
      const auto label = static_cast<std::size_t>(task.label);
      const auto kind = static_cast<std::size_t>(task.group_kind);
      text_ << ",\"label\":" << names_.labels[label]
            << ",\"Collective name\":" << names_.collectives[label].collective
            << ",\"Process Group Name\":" << names_.group_kinds[kind] << ",\"Group size\":";
      text_.integer(group_size(span, kind)) << ",\"wait_ns\":";
      text_.integer(trace_time(span.transfer_start, view_.zero) - view_.start(span));
    } else if (task.kind != TaskKind::kLocal) {
      const std::int32_t peer = instance(span).peers[static_cast<std::size_t>(task.peer_slot)];
      text_ << (task.kind == TaskKind::kSend ? ",\"Collective name\":\"send\",\"peer\":"
                                             : ",\"Collective name\":\"recv\",\"peer\":");
      text_.integer(peer < 0 ? -1 : view_.program.instances[static_cast<std::size_t>(peer)].rank);
    }
  }

  std::int64_t group_size(const Span& span, std::size_t kind) const {
    if (kind < part_.group_sizes.size()) {
      return part_.group_sizes[kind];
    }
    const std::vector<std::int32_t>& groups = instance(span).groups;
    const std::int32_t group = kind < groups.size() ? groups[kind] : -1;
    return group < 0 ? 1
                     : static_cast<std::int64_t>(
                           view_.program.groups[kind][static_cast<std::size_t>(group)].size());
  }

  void write_arrow(const Span& span, const Task& task) {
    const std::int64_t id = arrows_.id(span);
    if (id == 0) {
      return;
    }
    const bool leaves = task.kind == TaskKind::kSend;
    begin_event(leaves ? "\"ph\":\"s\",\"cat\":\"p2p\",\"name\":\"p2p\""
                       : "\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"p2p\",\"name\":\"p2p\"",
                instance(span).rank,
                stream_track(task.stream));
    text_ << ",\"id\":";
    text_.integer(offsets_.arrow + id) << ",\"ts\":";
    text_.micros(leaves ? arrows_.arrow(id).from : arrows_.arrow(id).to) << "}";
  }

  void write_memory(const Span* first, const Span* last) {
    for (const MemoryLevel& level : memory_levels(view_, first, last)) {
      begin_event("\"ph\":\"C\",\"name\":\"memory\"", instance(*first).rank, step_track());
      text_ << ",\"ts\":";
      text_.micros(level.time) << ",\"args\":{\"bytes\":";
      text_.integer(level.bytes) << "}}";
    }
  }

  TraceView view_;
  TraceNames names_;
  Arrows arrows_;
  const TracePart& part_;
  PartOffsets offsets_;
  TraceText& text_;
  bool any_;
};

}  // namespace

std::string chrome_trace(const std::vector<TracePart>& parts, const TraceOptions& options) {
  constexpr std::size_t kBytesPerSlice = 230;
  std::size_t slices = 0;
  for (const TracePart& part : parts) {
    slices += part.timeline->spans.size();
  }
  std::int64_t pids = 1;
  while (pids < options.world_size) {
    pids *= 10;
  }
  std::string out;
  out.reserve(slices * kBytesPerSlice + 4096);
  TraceText text(out);
  write_header(options, parts.empty() ? 0 : first_rank(parts.front()), text);
  PartOffsets offsets;
  for (const TracePart& part : parts) {
    TraceWriter writer(part, options.steps, offsets, out.back() != '[', text);
    writer.write();
    offsets = {offsets.pid + pids, offsets.arrow + writer.arrows()};
  }
  if (!parts.empty()) {
    const TracePart& first = parts.front();
    write_link_counters(TraceView(*first.program, *first.timeline, options.steps),
                        options.links,
                        offsets.pid,
                        text);
  }
  text << "\n ],\n \"traceName\": " << json_string(options.title) << "\n}\n";
  return out;
}

std::string chrome_trace(const Program& program,
                         const Timeline& timeline,
                         const TraceOptions& options) {
  return chrome_trace({{&program, &timeline, "", options.group_sizes}}, options);
}

}  // namespace foretrain
