#pragma once

#include "foretrain/program.h"
#include "foretrain/report.h"
#include "foretrain/timeline.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of the Chrome trace: text of numbers and names, arrows, counters.
namespace foretrain {

/// Appends to one string; no event allocates.
class TraceText {
 public:
  explicit TraceText(std::string& out) : out_(out) {}
  TraceText& operator<<(std::string_view text) {
    out_.append(text);
    return *this;
  }
  TraceText& integer(std::int64_t value);
  /// Nanoseconds as microseconds with exactly three decimals.
  TraceText& micros(std::int64_t nanoseconds);

 private:
  std::string& out_;
};

/// A JSON string, quotes included; broken UTF-8 replaced.
std::string json_string(std::string_view text);

/// An object's text on one line; "{}" for anything that is not an object.
std::string object_or_empty(const std::string& json);

/// The first word of a block's name says what action it is: 'F' of "F embedding 7 layers"; 0: none.
char action_letter(const std::string& block_name);

/// A collective as NCCL's kernel and PyTorch's profiler call it, so that readers recognise it.
struct CollectiveName {
  std::string kernel;      ///< quoted, "ncclDevKernel_AllGather_RING_LL"
  std::string collective;  ///< quoted, "_allgather_base"
};
CollectiveName collective_name(std::string_view label);

/// Everything a program calls by name, quoted once.
struct TraceNames {
  explicit TraceNames(const Program& program);
  std::vector<std::string> labels, streams, group_kinds, blocks;
  std::vector<CollectiveName> collectives;  ///< by label
  std::vector<char> action_letters;         ///< by block: 'F', 'B', 'I', 'W'; 0: not an action
};

/// Nanoseconds since the trace's zero, half a nanosecond rounded up.
inline std::int64_t trace_time(Instant time, Instant zero) {
  constexpr std::int64_t kPicosecondsPerNanosecond = 1000;
  return ((time - zero).count() + kPicosecondsPerNanosecond / 2) / kPicosecondsPerNanosecond;
}

/// The spans of the steps a trace shows and where its time begins.
struct TraceView {
  TraceView(const Program& program, const Timeline& timeline, int steps);
  bool shows(const Span& span) const { return span.step >= 0 && span.step < steps; }
  const Task& task(const Span& span) const;
  const Call& call(const Span& span) const;
  std::int64_t start(const Span& span) const { return trace_time(span.start, zero); }
  std::int64_t end(const Span& span) const { return trace_time(span.end, zero); }

  const Program& program;
  const Timeline& timeline;
  int steps = 1;
  Instant zero{};
};

/// A send and its receive, both shown.
struct Arrow {
  std::int64_t key = 0;
  std::int64_t from = 0, to = 0;  ///< nanoseconds, from <= to
};

/// All arrows of a trace; an arrow's id is its index + 1.
class Arrows {
 public:
  explicit Arrows(const TraceView& view);
  /// The arrow that leaves or reaches this span; 0: none.
  std::int64_t id(const Span& span) const;
  std::int64_t count() const { return static_cast<std::int64_t>(arrows_.size()); }
  const Arrow& arrow(std::int64_t id) const { return arrows_[static_cast<std::size_t>(id - 1)]; }

 private:
  std::int64_t key(const Span& span) const;

  const TraceView& view_;
  std::vector<std::int32_t> recorded_;  ///< per instance: dense index; -1: not recorded
  std::int64_t recorded_count_ = 0, message_count_ = 1;
  std::vector<Arrow> arrows_;
};

/// Bytes held by one instance from a moment on.
struct MemoryLevel {
  std::int64_t time = 0;  ///< nanoseconds
  std::int64_t bytes = 0;
};

/// The memory of the instance whose spans are [first, last): its base at time 0, then at most one
/// level per nanosecond.
std::vector<MemoryLevel> memory_levels(const TraceView& view, const Span* first, const Span* last);

/// A process of counters, one a link: bytes per second over time. Follows other events.
void write_link_counters(const TraceView& view,
                         const std::vector<LinkTrack>& links,
                         std::int64_t pid,
                         TraceText& text);

}  // namespace foretrain
