#include "foretrain/schedule.h"
#include "sim/base/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace foretrain {
namespace {

/// Times a schedule under one kind of transfers; returns its makespan, or -1 for a deadlock.
std::int64_t timed(const Schedule& schedule, const ScheduleCosts& costs) {
  const bool deadlock = find_deadlock(schedule, costs).has_value();
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  FORETRAIN_CHECK(timing.has_value() != deadlock, "timed and deadlocked disagree");
  if (!timing) {
    return -1;
  }
  for (std::size_t rank = 0; rank < timing->busy.size(); ++rank) {
    FORETRAIN_CHECK(timing->bubble[rank] >= Duration{0}, "rank %zu", rank);
    FORETRAIN_CHECK(timing->span_bubble[rank] <= timing->bubble[rank], "rank %zu", rank);
  }
  FORETRAIN_CHECK(!schedule_picture(schedule, *timing, {.width = 60}).empty(), "no picture");
  return timing->makespan.count();
}

void check_times(const Schedule& schedule) {
  ScheduleCosts costs{.p2p = Duration{3}};
  const std::int64_t eager = timed(schedule, costs);
  costs.sequential = true;
  timed(schedule, costs);
  costs.sequential = false;
  costs.mode = PointToPoint::kRendezvous;
  for (const bool batched : {true, false}) {
    costs.batched = batched;
    const std::int64_t blocking = timed(schedule, costs);
    FORETRAIN_CHECK(eager >= 0 || blocking < 0, "ends only where transfers block");
    FORETRAIN_CHECK(blocking < 0 || blocking >= eager, "blocking transfers save time");
  }
}

}  // namespace
}  // namespace foretrain

/// Rule: any text is either refused with a reason or a schedule that prints and reads back the
/// same, and whose timing, unless it deadlocks, is no shorter than any rank's work.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using foretrain::Schedule;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const foretrain::Expected<Schedule> schedule = foretrain::parse_schedule_csv(text);
  if (!schedule) {
    FORETRAIN_CHECK(!schedule.error().list.empty(), "a refusal without a reason");
    return 0;
  }
  const auto again = foretrain::parse_schedule_csv(foretrain::schedule_csv(*schedule));
  FORETRAIN_CHECK(again.has_value(), "its own text is refused");
  FORETRAIN_CHECK(again->ranks == schedule->ranks, "reads back otherwise");
  FORETRAIN_CHECK(again->note.empty(), "its own text needs a note");
  foretrain::check_times(*schedule);
  return 0;
}
