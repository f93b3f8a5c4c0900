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

/// One unit of work of a pipeline rank; prints and parses as `2F0` (stage, kind, micro-batch), with
/// `@copy` where the model stands twice and `.slice` where micro-batches are cut: `2F0@1`, `2F0.3`.
struct Action {
  std::int32_t stage = 0;  ///< virtual stage of its model copy
  ActionKind kind = ActionKind::kForward;
  std::int32_t micro_batch = 0;
  std::int8_t copy = -1;    ///< of the model; -1: there is only one
  std::int16_t slice = -1;  ///< of the sequence; -1: whole micro-batches
  bool overlapped = false;  ///< a forward that runs as one unit with the action after it
  auto operator<=>(const Action&) const = default;
};
/// The action alone, without the partner of an overlapped unit.
std::string to_string(const Action& action);
std::optional<Action> parse_action(std::string_view text);

/// Actions of the unit that begins at a place of a list: 2 for an overlapped forward, else 1.
constexpr std::size_t unit_length(const Action& first) {
  return first.overlapped ? 2 : 1;
}
/// A unit as PyTorch's CSV writes it: `2F0`, `(0F3;3B5)OVERLAP_F_B`.
std::string unit_text(std::span<const Action> unit);

struct ScheduleSize {
  std::int32_t pp = 1;             ///< p
  std::int32_t micro_batches = 1;  ///< m, over all copies of the model
  std::int32_t vpp = 1;            ///< v, chunks per rank and model copy
  std::int32_t group = 0;          ///< interleaved: micro-batches per group; 0: p
  std::int32_t slices = 1;         ///< k, sequence slices of a micro-batch
};

/// Where virtual stages lie. Linear: stage s on rank s. Loop: s mod p. V: s mod p in even sweeps,
/// p-1-(s mod p) in odd ones. Bidirectional: two model copies, copy 1 from the last rank to the
/// first.
enum class Placement { kLinear, kLoop, kV, kBidirectional };
constexpr std::int32_t copies_of(Placement placement) {
  return placement == Placement::kBidirectional ? 2 : 1;
}
/// The pipeline rank that owns a virtual stage of a copy.
std::int32_t stage_owner(Placement placement,
                         std::int32_t pp,
                         std::int32_t stage,
                         std::int32_t copy);

struct Schedule {
  std::string name;
  ScheduleSize size;
  Placement placement = Placement::kLinear;
  std::vector<std::vector<Action>> ranks;  ///< per pipeline rank, executed strictly in order
  std::string note = {};                   ///< what reading the lists took for granted

  std::int32_t stages() const { return size.pp * size.vpp; }  ///< of one model copy
  std::int32_t copies() const { return copies_of(placement); }
  std::int32_t owner(std::int32_t stage, std::int32_t copy = 0) const {
    return stage_owner(placement, size.pp, stage, copy);
  }
  /// The virtual stages of a rank, ascending; each is of one copy only.
  std::vector<std::int32_t> stages_of(std::int32_t rank) const;
  std::int32_t owner(const Action& action) const {
    return owner(action.stage, action.copy > 0 ? action.copy : 0);
  }
};

/// One row of the table of schedules; a new schedule is one file and one row.
struct ScheduleEntry {
  std::string_view name;
  std::string_view summary;
  Placement placement = Placement::kLinear;
  std::int32_t chunks = 1;  ///< per rank and model copy: 1, 2 (folded into a V); 0: any vpp
  bool uses_group = false;
  bool uses_slices = false;
  bool splits_backward = false;  ///< some backwards stand as I and W
  bool overlaps = false;         ///< has overlapped forward-backward units
  /// Why (pp, m, vpp, group, slices) is illegal, or nothing. Pointer is /schedule.
  std::optional<Diagnostic> (*illegal)(const ScheduleSize&) = nullptr;
  std::vector<std::vector<Action>> (*generate)(const ScheduleSize&) = nullptr;
};
std::span<const ScheduleEntry> schedule_table();
/// The row of a name, or nullptr.
const ScheduleEntry* find_schedule(std::string_view name);

/// The names of the table, in its order.
std::span<const std::string_view> schedule_names();

/// Builds a schedule by name. Faults: unknown name (with a suggestion), illegal size; pointer
/// /schedule.
Expected<Schedule> make_schedule(std::string_view name, const ScheduleSize& size);

/// What one virtual stage takes. Unitless callers scale to integers first.
struct ChunkCosts {
  Duration forward{1};
  Duration backward{2};  ///< whole; a cost of its own, not always the sum of its halves
  Duration input_gradient{1};
  Duration weight_gradient{1};
  /// Of an overlapped unit whose forward is of this stage; unset: the sum of its two actions.
  std::optional<Duration> overlapped = std::nullopt;
};

/// How transfers between ranks behave. Eager: sends never block and nothing congests. Rendezvous: a
/// rank stands still until each of its transfers is done, and a transfer begins when both ends
/// have come to it.
enum class PointToPoint { kEager, kRendezvous };

struct ScheduleCosts {
  std::vector<ChunkCosts> stages = {ChunkCosts{}};  ///< one for all, or one per virtual stage
  Duration p2p{0};                                  ///< of a transfer between ranks
  /// Overlapped units run as a forward and then a backward, each as soon as its input is there;
  /// else they start when both inputs are there and both outputs appear at their end.
  bool sequential = false;
  PointToPoint mode = PointToPoint::kEager;
  /// Rendezvous: transfers between two units of a rank are posted together, as
  /// batch_isend_irecv does; else one after another, sends first.
  bool batched = true;

  const ChunkCosts& of(const Action& action) const {
    return stages[stages.size() > 1 ? static_cast<std::size_t>(action.stage) : 0];
  }
};

/// The schedule executed as soon as possible under given costs. Both actions of an atomic
/// overlapped unit have the unit's start and end.
struct ScheduleTiming {
  Duration makespan{};
  std::vector<Duration> busy;         ///< per rank
  std::vector<Duration> bubble;       ///< per rank: makespan - busy
  std::vector<Duration> span_bubble;  ///< per rank: end of last - start of first action - busy
  std::vector<std::vector<Instant>> start, end;  ///< per rank, per action of its list
};

/// Times a schedule. Faults: lists that break a rule of schedule_faults, costs that are negative or
/// overflow, a deadlock as a diagnostic that shows the blocked actions.
Expected<ScheduleTiming> time_schedule(const Schedule& schedule, const ScheduleCosts& costs);

/// Activations (stage, micro-batch) with F started and not yet freed, at most, per rank; freed by
/// B, or by W where the backward is split; chunk units, slices where micro-batches are cut.
std::vector<std::int32_t> peak_in_flight(const Schedule& schedule);

/// Transfers that cross ranks, forward and backward together.
std::int64_t message_count(const Schedule& schedule);

/// Checks that every (copy, stage, micro-batch, slice) has its F, and its B or I and W, once, on
/// the owning rank, in order, and that the lists do not deadlock (eager transfers). Empty: valid.
std::vector<std::string> schedule_faults(const Schedule& schedule);

/// One rank per line, actions separated by commas (PyTorch's CSV notation).
std::string schedule_csv(const Schedule& schedule);

/// Lists in the same notation, as a CSV reader sees them (quotes, a line of titles, a rank's number
/// in front); empty cells are skipped. Sizes and placement follow from the lists. The note tells of
/// communication in PyTorch's dumps left out, and of B read as I where early PyTorch meant it.
/// Faults: text that is no action, stages that lie in no known placement, lists that break a rule.
/// A deadlock is not one of them: find_deadlock tells.
Expected<Schedule> parse_schedule_csv(std::string_view text);

/// The blocked actions as a grid, one rank per line, or nothing when the lists run to their end.
/// The lists must be without other faults.
std::optional<std::string> find_deadlock(const Schedule& schedule, const ScheduleCosts& costs = {});

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
