#include "sim/report/trace_events.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

template <typename Row>
const Row& at(const std::vector<Row>& rows, std::int32_t index) {
  return rows[static_cast<std::size_t>(index)];
}

/// Lower case without separators, so that spellings of one operation are one.
std::string plain(std::string_view label) {
  std::string text;
  for (const char c : label) {
    if (c >= 'A' && c <= 'Z') {
      text += static_cast<char>(c - 'A' + 'a');
    } else if (c != '-' && c != '_' && c != ' ') {
      text += c;
    }
  }
  return text;
}

Instant trace_zero(const TraceView& view) {
  bool found = false;
  Instant zero{};
  const auto consider = [&](Instant time) {
    zero = found ? std::min(zero, time) : time;
    found = true;
  };
  std::int32_t instance = -1;
  for (const Span& span : view.timeline.spans) {
    if (!view.shows(span)) {
      continue;
    }
    consider(span.start);
    const auto index = static_cast<std::size_t>(span.instance);
    const auto& ends = view.timeline.instance_step_ends;
    if (span.instance != instance && index < ends.size() && !ends[index].empty()) {
      consider(ends[index].front());
    }
    instance = span.instance;
  }
  return zero;
}

struct MemoryChange {
  Instant time{};
  std::int64_t bytes = 0;
};

}  // namespace

TraceText& TraceText::integer(std::int64_t value) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out_.append(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  return *this;
}

TraceText& TraceText::micros(std::int64_t nanoseconds) {
  integer(nanoseconds / 1000);
  const auto rest = static_cast<int>(nanoseconds % 1000);
  const std::array<char, 4> decimals = {'.',
                                        static_cast<char>('0' + rest / 100),
                                        static_cast<char>('0' + rest / 10 % 10),
                                        static_cast<char>('0' + rest % 10)};
  out_.append(decimals.data(), decimals.size());
  return *this;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string object_or_empty(const std::string& json) {
  const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
  return parsed.is_object()
             ? parsed.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
             : "{}";
}

char action_letter(const std::string& block_name) {
  const bool word = block_name.size() == 1 || (block_name.size() > 1 && block_name[1] == ' ');
  const bool two = block_name.find(" & ") != std::string::npos;  // an overlapped unit
  const bool action =
      word && !two && std::string_view("FBIW").find(block_name[0]) != std::string_view::npos;
  return action ? block_name[0] : '\0';
}

CollectiveName collective_name(std::string_view label) {
  struct Row {
    std::string_view operation, kernel, collective;
  };
  // NCCL runs an all-to-all as grouped sends and receives.
  static constexpr std::array<Row, 5> kRows = {{
      {"allreduce", "ncclDevKernel_AllReduce_Sum_RING_LL", "allreduce"},
      {"allgather", "ncclDevKernel_AllGather_RING_LL", "_allgather_base"},
      {"reducescatter", "ncclDevKernel_ReduceScatter_Sum_RING_LL", "_reduce_scatter_base"},
      {"alltoall", "ncclDevKernel_SendRecv", "all_to_allv"},
      {"broadcast", "ncclDevKernel_Broadcast_RING_LL", "broadcast"},
  }};
  const std::string text = plain(label);
  for (const Row& row : kRows) {
    if (text.find(row.operation) != std::string::npos) {
      return {json_string(row.kernel), json_string(row.collective)};
    }
  }
  return {json_string("ncclDevKernel_Generic"), json_string(label)};
}

TraceNames::TraceNames(const Program& program) {
  for (const std::string& label : program.labels) {
    labels.push_back(json_string(label));
    collectives.push_back(collective_name(label));
  }
  for (const Stream& stream : program.streams) {
    streams.push_back(json_string(stream.name));
  }
  for (const std::string& kind : program.group_kinds) {
    group_kinds.push_back(json_string(kind));
  }
  for (const Block& block : program.blocks) {
    blocks.push_back(json_string(block.name));
    action_letters.push_back(action_letter(block.name));
  }
}

TraceView::TraceView(const Program& shown_program, const Timeline& shown_timeline, int step_count)
    : program(shown_program), timeline(shown_timeline), steps(step_count) {
  zero = trace_zero(*this);
}

const Call& TraceView::call(const Span& span) const {
  const Instance& instance = at(program.instances, span.instance);
  return at(at(program.templates, instance.template_index).calls, span.call);
}

const Task& TraceView::task(const Span& span) const {
  return at(at(program.blocks, call(span).block).tasks, span.task);
}

Arrows::Arrows(const TraceView& view) : view_(view), recorded_(view.program.instances.size(), -1) {
  for (const Span& span : view.timeline.spans) {
    std::int32_t& index = recorded_[static_cast<std::size_t>(span.instance)];
    index = index < 0 ? static_cast<std::int32_t>(recorded_count_++) : index;
    message_count_ = std::max<std::int64_t>(message_count_, view.call(span).message + 1);
  }
  std::vector<Arrow> sends;
  std::vector<Arrow> receives;
  for (const Span& span : view.timeline.spans) {
    const TaskKind kind = view.task(span).kind;
    const std::int64_t id = view.shows(span) ? key(span) : -1;
    if (id >= 0 && kind == TaskKind::kSend && span.end > span.start) {
      sends.push_back({id, view.start(span), 0});
    } else if (id >= 0 && kind == TaskKind::kReceive) {
      receives.push_back({id, view.start(span), view.end(span)});
    }
  }
  const auto by_key = [](const Arrow& a, const Arrow& b) { return a.key < b.key; };
  std::sort(sends.begin(), sends.end(), by_key);
  std::sort(receives.begin(), receives.end(), by_key);
  auto receive = receives.begin();
  for (const Arrow& send : sends) {
    receive = std::lower_bound(receive, receives.end(), send, by_key);
    if (receive == receives.end() || receive->key != send.key) {
      continue;
    }
    // The arrow lands inside the receive, a nanosecond before its end: a slice is open until then.
    const std::int64_t landing = std::max({receive->from, receive->to - 1, send.from});
    arrows_.push_back({send.key, send.from, landing});
  }
}

std::int64_t Arrows::key(const Span& span) const {
  const Task& task = view_.task(span);
  const bool sends = task.kind == TaskKind::kSend;
  if ((!sends && task.kind != TaskKind::kReceive) || task.peer_slot < 0) {
    return -1;
  }
  const std::int32_t peer =
      at(view_.program.instances, span.instance).peers[static_cast<std::size_t>(task.peer_slot)];
  const std::int64_t self = at(recorded_, span.instance);
  const std::int64_t other = peer < 0 ? -1 : at(recorded_, peer);
  if (other < 0) {
    return -1;
  }
  const std::int64_t sender = sends ? self : other;
  const std::int64_t receiver = sends ? other : self;
  const std::int64_t pair = (span.step * recorded_count_ + sender) * recorded_count_ + receiver;
  return pair * message_count_ + view_.call(span).message;
}

std::int64_t Arrows::id(const Span& span) const {
  const std::int64_t wanted = key(span);
  if (wanted < 0) {
    return 0;
  }
  const auto found = std::lower_bound(
      arrows_.begin(), arrows_.end(), wanted, [](const Arrow& arrow, std::int64_t value) {
        return arrow.key < value;
      });
  return found != arrows_.end() && found->key == wanted ? found - arrows_.begin() + 1 : 0;
}

std::vector<MemoryLevel> memory_levels(const TraceView& view, const Span* first, const Span* last) {
  std::vector<MemoryChange> changes;
  for (const Span* span = first; span != last; ++span) {
    if (!view.shows(*span)) {
      continue;
    }
    const Call& call = view.call(*span);
    const auto last_task = at(view.program.blocks, call.block).tasks.size() - 1;
    if (span->task == 0 && call.allocated_bytes != 0) {
      changes.push_back({span->start, call.allocated_bytes});
    }
    if (static_cast<std::size_t>(span->task) == last_task && call.freed_bytes != 0) {
      changes.push_back({span->end, -call.freed_bytes});
    }
  }
  // At one instant what ends gives back before what starts takes.
  std::sort(changes.begin(), changes.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  const Instance& instance = at(view.program.instances, first->instance);
  std::int64_t bytes = at(view.program.templates, instance.template_index).base_bytes;
  std::vector<MemoryLevel> levels = {{0, bytes}};
  for (const MemoryChange& change : changes) {
    bytes += change.bytes;
    const std::int64_t time = trace_time(change.time, view.zero);
    if (levels.size() > 1 && levels.back().time == time) {
      levels.back().bytes = bytes;
    } else {
      levels.push_back({time, bytes});
    }
  }
  return levels;
}

}  // namespace foretrain
