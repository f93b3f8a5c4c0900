#include "tools/compare_output.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// How much longer a part of a step is than the same part of another.
struct PartChange {
  std::string label;
  Duration change{};
};

/// The parts that make the difference between two steps, largest first; what is small beside them
/// is left out.
std::vector<PartChange> changes_between(const Breakdown& from, const Breakdown& to) {
  constexpr std::size_t kMost = 4;
  constexpr int kSmall = 25;  // one part in so many
  std::vector<PartChange> changes;
  Duration all{};
  for (const BreakdownPart& part : breakdown_parts()) {
    const Duration change = to.*part.member - from.*part.member;
    changes.push_back({std::string(part.label), change});
    all += std::chrono::abs(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const PartChange& a, const PartChange& b) {
    return std::chrono::abs(a.change) > std::chrono::abs(b.change);
  });
  const auto small = std::find_if(changes.begin(), changes.end(), [&](const PartChange& part) {
    return std::chrono::abs(part.change) * kSmall < all || part.change == Duration{};
  });
  changes.erase(small, changes.end());
  changes.resize(std::min(changes.size(), kMost));
  return changes;
}

std::string changes_text(const std::vector<PartChange>& changes) {
  std::string text;
  for (const PartChange& part : changes) {
    text += (text.empty() ? "" : ", ") + part.label + (part.change < Duration{} ? " -" : " +") +
            human_time(std::chrono::abs(part.change));
  }
  return text;
}

/// What the schedules do differently, where the bubble is what changes.
std::string mechanism(const ComparedRow& winner, const ComparedRow& other) {
  const ScheduleEntry* const own = find_schedule(winner.schedule);
  const ScheduleEntry* const theirs = find_schedule(other.schedule);
  if (own == nullptr || theirs == nullptr) {
    return "";
  }
  const std::int64_t chunks = winner.scenario->parallelism.vpp;
  const std::int64_t fewer = other.scenario->parallelism.vpp;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (chunks > fewer) {
    add(std::to_string(chunks) + " chunks a rank instead of " + std::to_string(fewer) +
        " fill and drain the pipeline sooner");
  }
  if (own->splits_backward && !theirs->splits_backward) {
    add("weight gradients run where it would wait");
  }
  if (own->placement == Placement::kBidirectional &&
      theirs->placement != Placement::kBidirectional) {
    add("both ends feed the pipeline");
  }
  return text;
}

std::string memory_between(const StepReport& winner, const StepReport& other) {
  const std::int64_t change = winner.memory_peak - other.memory_peak;
  if (change == 0) {
    return "the same peak memory";
  }
  return "peak memory " + std::string(change < 0 ? "-" : "+") + human_bytes(std::abs(change));
}

std::string share_of(Duration part, Duration whole) {
  return percent(seconds(part) / seconds(whole));
}

/// "zb-v takes 2.10 s (8.9 %) less than 1f1b: bubble -3.56 s, ...; peak memory +4.30 GB".
std::string against(const ComparedRow& winner, const ComparedRow& other) {
  const StepReport& mine = winner.simulation->report;
  const StepReport& theirs = other.simulation->report;
  const Duration gain = theirs.step_time - mine.step_time;
  std::string text = winner.label;
  if (gain == Duration{}) {
    text += " takes as long as " + other.label;
  } else {
    text += " takes " + human_time(std::chrono::abs(gain)) + " (" +
            share_of(std::chrono::abs(gain), theirs.step_time) + ")" +
            (gain > Duration{} ? " less than " : " more than ") + other.label;
  }
  const std::vector<PartChange> changes = changes_between(theirs.breakdown, mine.breakdown);
  if (!changes.empty()) {
    text += ": " + changes_text(changes);
  }
  const auto bubble = std::find_if(changes.begin(), changes.end(), [](const PartChange& part) {
    return part.label == "bubble" && part.change < Duration{};
  });
  const std::string how = bubble == changes.end() ? "" : mechanism(winner, other);
  return text + (how.empty() ? "" : " (" + how + ")") + "; " + memory_between(mine, theirs);
}

bool differs(const ComparedRow& a, const ComparedRow& b) {
  const StepReport& one = a.simulation->report;
  const StepReport& other = b.simulation->report;
  return one.step_time != other.step_time || one.memory_peak != other.memory_peak;
}

/// The fastest row that fits but the winner, and but those that are no different run.
const ComparedRow* next_best(const std::vector<ComparedRow>& rows, const ComparedRow& winner) {
  const ComparedRow* next = nullptr;
  for (const ComparedRow& row : rows) {
    if (row.fits() && differs(row, winner) &&
        (next == nullptr ||
         row.simulation->report.step_time < next->simulation->report.step_time)) {
      next = &row;
    }
  }
  return next;
}

/// How much memory is missing, the GPU's own context counted.
std::int64_t missing(const StepReport& report) {
  return report.memory_peak + report.context_bytes - report.memory_capacity;
}

std::string too_large(const std::vector<ComparedRow>& rows, const ComparedRow* winner) {
  std::string text;
  for (const ComparedRow& row : rows) {
    if (!ended(row) || row.fits()) {
      continue;
    }
    const StepReport& report = row.simulation->report;
    if (winner == nullptr || report.step_time < winner->simulation->report.step_time) {
      text += (text.empty() ? "" : ", ") + row.label + " (" + human_time(report.step_time) +
              ", misses by " + human_bytes(missing(report)) + ")";
    }
  }
  return text.empty() ? "" : (winner == nullptr ? "none fits: " : "faster, but too large: ") + text;
}

}  // namespace

RowFigures figures_of(const StepReport& report) {
  const Breakdown& parts = report.breakdown;
  return {seconds(parts.bubble) / seconds(report.step_time),
          parts.tp + parts.cp + parts.ep + parts.pp + parts.dp};
}

bool ended(const ComparedRow& row) {
  return row.simulation && !row.simulation->report.deadlock;
}

std::vector<std::string> compare_why(const std::vector<ComparedRow>& rows,
                                     const std::string& baseline) {
  std::vector<std::string> why;
  const auto add = [&why](const std::string& text) {
    if (!text.empty()) {
      why.push_back(text);
    }
  };
  const ComparedRow* const winner = fastest(rows);
  if (winner != nullptr) {
    const ComparedRow* const next = next_best(rows, *winner);
    if (next != nullptr) {
      add(against(*winner, *next));
    }
    for (const ComparedRow& row : rows) {
      if (row.label == baseline && &row != winner && &row != next && ended(row)) {
        add(against(*winner, row));
      }
    }
    const auto fit =
        std::count_if(rows.begin(), rows.end(), [](const ComparedRow& row) { return row.fits(); });
    if (fit == 1 && rows.size() > 1) {
      add("only " + winner->label + " fits");
    }
  }
  add(too_large(rows, winner));
  return why;
}

}  // namespace foretrain
