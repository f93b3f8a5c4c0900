#include "sim/estimate/schedule_shape.h"

#include "foretrain/schedule.h"
#include "sim/base/check.h"
#include "sim/base/real.h"

#include <algorithm>
#include <optional>

namespace foretrain {
namespace {

ScheduleSize size_of(const Layout& layout, std::int64_t micro_batches) {
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(layout.pp);
  size.vpp = static_cast<std::int32_t>(layout.vpp);
  size.micro_batches = static_cast<std::int32_t>(micro_batches);
  size.slices = static_cast<std::int32_t>(layout.slices);
  return size;
}

std::optional<ScheduleShape> published(const Layout& layout, std::int64_t micro_batches) {
  const double m = real(micro_batches);
  const double pp = real(layout.pp);
  const double vpp = real(layout.vpp);
  const double bubble = (pp - 1) / vpp;
  if (layout.schedule == "gpipe") {
    return ScheduleShape{bubble, m};
  }
  if (layout.schedule == "looped-bfs") {
    return ScheduleShape{((pp - 1) + (vpp - 1) * std::max(0.0, pp - m)) / vpp, m};
  }
  if (layout.schedule == "1f1b" || layout.schedule == "interleaved") {
    const double chunks = layout.vpp > 1 ? (vpp - 1) * pp + 2 * (pp - 1) + 1 : pp;
    return ScheduleShape{bubble, std::min(m * vpp, chunks) / vpp};
  }
  return std::nullopt;
}

}  // namespace

std::int64_t enough_micro_batches(const Layout& layout, std::int64_t micro_batches) {
  const std::int64_t full = 4 * layout.pp;
  if (micro_batches <= full) {
    return micro_batches;
  }
  // Rounds of more than pp micro-batches depend on the number itself.
  const bool rounds = micro_batches % layout.pp != 0 && find_schedule(layout.schedule)->chunks == 0;
  return rounds ? micro_batches : full;
}

ScheduleShape timed_shape(const Layout& layout, std::int64_t micro_batches) {
  const Expected<Schedule> schedule =
      make_schedule(layout.schedule, size_of(layout, micro_batches));
  FORETRAIN_CHECK(schedule.has_value(), "%s is illegal here", layout.schedule.c_str());
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, ScheduleCosts{});
  FORETRAIN_CHECK(timing.has_value(), "%s has no times", layout.schedule.c_str());
  constexpr double kPasses = 3;  // forward, input gradient, weight gradient
  const double parts = real(layout.vpp * layout.slices);
  const Duration idle = *std::max_element(timing->bubble.begin(), timing->bubble.end());
  const std::vector<std::int32_t> held = peak_in_flight(*schedule);
  return {real(idle.count()) / (kPasses * parts),
          real(*std::max_element(held.begin(), held.end())) / parts};
}

ScheduleShape ScheduleShapes::of(const Layout& layout, std::int64_t micro_batches) const {
  if (const std::optional<ScheduleShape> shape = published(layout, micro_batches)) {
    return *shape;
  }
  const std::int64_t enough = enough_micro_batches(layout, micro_batches);
  const Key key = {layout.schedule, layout.pp, layout.vpp, layout.slices, enough};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
  }
  const ScheduleShape shape = timed_shape(layout, enough);
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, shape).first->second;
}

}  // namespace foretrain
