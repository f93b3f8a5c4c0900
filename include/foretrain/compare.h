#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Scenarios, or one under several schedules, simulated side by side.
namespace foretrain {

/// A schedule as a list names it: "zb-v", "interleaved:8" (vpp), "interleaved:8:32" (group),
/// "interleaved:best" (vpp and stage split are searched), or a path of the user's own lists.
struct ScheduleChoice {
  std::string text;  ///< as written
  std::string name;  ///< need not be in the table: that is told where it is used
  std::string csv;   ///< path, absolute; then there is no name
  std::optional<std::int64_t> vpp, group;
  bool best = false;
};

/// Parses one. Faults: no such form; pointer /schedules.
Expected<ScheduleChoice> parse_schedule_choice(const std::string& text);

/// "NAME:best" for every schedule of the table.
std::vector<ScheduleChoice> every_schedule();

/// A way to run what is compared: its changes of the scenario, as --set makes them.
using Settings = std::vector<std::string>;

/// One row: a scenario, and the ways to run it of which the best counts. With one way there is
/// nothing to choose.
struct Contestant {
  std::string label;
  std::string scenario;  ///< preset name or path
  std::string schedule;  ///< name, where another than the scenario's is meant
  Settings overrides;    ///< the user's, before those of a way
  std::vector<Settings> ways = {Settings{}};
  std::vector<Diagnostic> faults;  ///< where there is no way
};

/// The scenario under a schedule, which replaces its own, vpp included; what else the scenario says
/// of its schedule (barrier, p2p, streams, ...) stays. Of a schedule that is to be at its best,
/// ways are: every vpp above 1 for which pp x vpp divides the layers, or the layers and 2 for
/// embedding and loss (slices 2, 4 and 8 where micro-batches are cut), each with the scenario's own
/// split of layers, the even one (what is left over in the middle), and one layer fewer on the
/// first stage, on the last, and on both.
Contestant under_schedule(const std::string& scenario,
                          const Settings& overrides,
                          const ScheduleChoice& choice);

struct CompareOptions {
  int threads = 0;                        ///< 0: all cores; never changes the result
  bool record = false;                    ///< keep spans for a trace
  std::vector<std::int64_t> trace_ranks;  ///< empty: one rank per pipeline stage of replica 0
  /// Called, where set, from one thread at a time as simulations end.
  std::function<void(int done, int total)> progress;
};

struct ComparedRow {
  /// The contestant's; with ":" and vpp, or " of " and slices, where those were to be chosen.
  std::string label;
  std::string file;                      ///< the scenario, as the contestant names it
  std::string schedule;                  ///< name; refused ones have it too where it is known
  Settings settings;                     ///< of the way that counts, beside the user's
  std::int64_t ways = 1;                 ///< that are legal
  std::optional<Scenario> scenario;      ///< nothing where refused
  std::optional<Simulation> simulation;  ///< likewise
  /// The largest idle time of a rank between its first and last action, over the makespan, when the
  /// schedule's actions run alone: what would be left of the bubble if no step waited for all
  /// ranks.
  std::optional<double> span_share;
  Faults faults;  ///< why refused
  bool fits() const {
    return simulation && !simulation->report.deadlock && simulation->report.fits != Fit::kNo;
  }
};

/// The rows in the order given. Of several ways the fastest that fits counts, where none fits the
/// one that takes least memory; of equals the first.
std::vector<ComparedRow> compare(const std::vector<Contestant>& contestants,
                                 const CompareOptions& options = {});

/// Puts what fits first, each kind by step time; then deadlocks, then what is refused.
void rank_rows(std::vector<ComparedRow>& rows);

/// The fastest row that fits; nullptr where none does.
const ComparedRow* fastest(const std::vector<ComparedRow>& rows);

}  // namespace foretrain
