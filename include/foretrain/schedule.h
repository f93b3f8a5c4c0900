#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Pipeline schedules as pure combinatorics: per rank an ordered list of actions. No cost, no
/// cluster.
namespace foretrain {

enum class ActionKind : std::uint8_t {
  kForward,         ///< F
  kBackward,        ///< B, full backward
  kInputGradient,   ///< I
  kWeightGradient,  ///< W
};

/// One unit of work of a pipeline rank; prints and parses as `2F0` (stage, kind, micro-batch).
struct Action {
  std::int32_t stage = 0;  ///< virtual stage, 0 .. pp * vpp - 1
  ActionKind kind = ActionKind::kForward;
  std::int32_t micro_batch = 0;
  auto operator<=>(const Action&) const = default;
};
std::string to_string(const Action& action);
std::optional<Action> parse_action(std::string_view text);

struct ScheduleSize {
  std::int32_t pp = 1;             ///< p
  std::int32_t micro_batches = 1;  ///< m
  std::int32_t vpp = 1;            ///< v, chunks per rank
  std::int32_t group = 0;          ///< interleaved: micro-batches per group; 0: p
};

enum class Placement { kLinear, kLoop };

struct Schedule {
  std::string name;
  ScheduleSize size;
  Placement placement = Placement::kLinear;
  std::vector<std::vector<Action>> ranks;  ///< per pipeline rank, executed strictly in order

  std::int32_t stages() const { return size.pp * size.vpp; }
  /// The pipeline rank that owns a virtual stage.
  std::int32_t owner(std::int32_t stage) const { return stage % size.pp; }
};

/// One row of the table of schedules; a new schedule is one file and one row.
struct ScheduleEntry {
  std::string_view name;
  std::string_view summary;
  Placement placement = Placement::kLinear;
  bool uses_vpp = false;  ///< vpp > 1 is legal
  bool uses_group = false;
  /// Why (pp, m, vpp, group) is illegal, or nothing. Pointer is /schedule.
  std::optional<Diagnostic> (*illegal)(const ScheduleSize&) = nullptr;
  std::vector<std::vector<Action>> (*generate)(const ScheduleSize&) = nullptr;
};
std::span<const ScheduleEntry> schedule_table();

/// Every name the contract fixes, built or not; for did-you-mean and "not simulated yet".
std::span<const std::string_view> schedule_names();

/// Builds a schedule by name. Faults: unknown name (with a suggestion), not built yet, illegal
/// size; pointer /schedule.
Expected<Schedule> make_schedule(std::string_view name, const ScheduleSize& size);

/// Per-chunk costs for timing a schedule alone. Unitless callers scale to integers first.
struct ChunkCosts {
  Duration forward{1};
  Duration backward{2};
  Duration p2p{0};  ///< latency added to a dependency that crosses ranks; links never congest
};

/// The schedule executed as soon as possible under given costs.
struct ScheduleTiming {
  Duration makespan{};
  std::vector<Duration> busy;         ///< per rank
  std::vector<Duration> bubble;       ///< per rank: makespan - busy
  std::vector<Duration> span_bubble;  ///< per rank: end of last - start of first action - busy
  std::vector<std::vector<Instant>> start, end;  ///< per rank, per action of its list
};

/// Times a schedule. Faults: lists that break a rule of schedule_faults, costs that are negative or
/// overflow, a deadlock as a diagnostic that shows the blocked actions.
Expected<ScheduleTiming> time_schedule(const Schedule& schedule, const ChunkCosts& costs);

/// Activations (stage, micro-batch) with F started and B not finished, at most, per rank; chunk
/// units.
std::vector<std::int32_t> peak_in_flight(const Schedule& schedule);

/// Transfers that cross ranks, forward and backward together.
std::int64_t message_count(const Schedule& schedule);

/// Checks that every (stage, micro-batch) has its F and B once, on the owning rank, in order, and
/// that the lists do not deadlock. Empty: valid.
std::vector<std::string> schedule_faults(const Schedule& schedule);

/// One rank per line, actions separated by commas (PyTorch's CSV notation).
std::string schedule_csv(const Schedule& schedule);

/// Lists in the same notation; empty cells (padding in PyTorch's files) are skipped. The sizes
/// follow from the lists; stage s is on rank s mod p. Faults: text that is no action, lists that
/// break a rule. A deadlock is not one of them: find_deadlock tells.
Expected<Schedule> parse_schedule_csv(std::string_view text);

/// The blocked actions as a grid, one rank per line, or nothing when the lists run to their end.
/// The lists must be without other faults.
std::optional<std::string> find_deadlock(const Schedule& schedule);

/// How a picture is laid out.
struct PictureScale {
  int width = 100;   ///< columns of the terminal
  Duration unit{1};  ///< one printed unit of time, a power of ten; Duration{10}: 33 prints as 3.3
};

/// The timeline as a picture for a terminal, readable without colour, at most `scale.width`
/// columns. A row per rank, idle time dotted; each action named when that fits, otherwise a letter
/// per column. The last line says how to read it.
std::string schedule_picture(const Schedule& schedule,
                             const ScheduleTiming& timing,
                             const PictureScale& scale);

/// ticks / unit in decimal, exactly (unit a power of ten): "33", "3.3", "-0.05".
std::string exact_decimal(Duration ticks, Duration unit);

}  // namespace foretrain
