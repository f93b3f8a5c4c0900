#include "foretrain/schedule.h"
#include "sim/base/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

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
  const bool deadlock = foretrain::find_deadlock(*schedule).has_value();
  const auto timing = foretrain::time_schedule(*schedule, {});
  FORETRAIN_CHECK(timing.has_value() != deadlock, "timed and deadlocked disagree");
  for (std::size_t rank = 0; timing && rank < timing->busy.size(); ++rank) {
    FORETRAIN_CHECK(timing->bubble[rank] >= foretrain::Duration{0}, "rank %zu", rank);
    FORETRAIN_CHECK(timing->span_bubble[rank] <= timing->bubble[rank], "rank %zu", rank);
  }
  return 0;
}
