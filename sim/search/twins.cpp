#include "sim/search/twins.h"

#include "foretrain/schedule.h"
#include "sim/search/stages.h"

#include <algorithm>
#include <limits>

namespace foretrain {
namespace {

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The order without dimensions of one rank.
std::string reduced(const std::string& order, const Layout& layout) {
  std::string kept;
  std::size_t at = 0;
  while (at < order.size()) {
    const std::size_t end = std::min(order.find('-', at), order.size());
    const std::string name = order.substr(at, end - at);
    const std::int64_t degree = name == "tp"   ? layout.tp
                                : name == "cp" ? layout.cp
                                : name == "dp" ? layout.dp
                                : name == "pp" ? layout.pp
                                               : layout.ep;
    kept += degree > 1 ? name + "-" : "";
    at = end + 1;
  }
  return kept;
}

bool order_stands_before(const SearchSubject& subject, const Layout& layout) {
  if (subject.axes.orders.size() == 1) {
    return false;
  }
  const std::string own = reduced(layout.order, layout);
  for (const std::string& order : subject.axes.orders) {
    if (order == layout.order) {
      return false;
    }
    if (reduced(order, layout) == own) {
      return true;
    }
  }
  return false;
}

/// Nothing to shard over: the least sharding stands for all. Experts may have replicas inside tp.
bool sharding_stands_before(const SearchSubject& subject, const Layout& layout) {
  const bool experts = subject.job.model.experts > 0;
  const bool replicas =
      layout.dp * layout.cp > 1 || (experts && layout.tp > layout.ep * layout.etp);
  const std::vector<Sharding>& axis = subject.axes.shardings;
  return !replicas && layout.sharding != *std::min_element(axis.begin(), axis.end());
}

/// Less is better: 1f1b, which keeps least; then fewer chunks; then the order of the table.
std::int64_t preference(const std::string& schedule, std::int64_t vpp) {
  constexpr std::int64_t kPlain = std::int64_t{1} << 32;
  constexpr std::int64_t kNames = 64;
  const ScheduleEntry* const entry = find_schedule(schedule);
  if (schedule == "1f1b" || entry == nullptr) {
    return 0;
  }
  return (entry->chunks == 1 ? kPlain : vpp) * kNames + (entry - schedule_table().data());
}

/// Without a pipeline: whether these names of a schedule are legal.
bool runs_alone(const SearchSubject& subject,
                const Layout& layout,
                const std::string& schedule,
                std::int64_t vpp) {
  const ScheduleEntry* const entry = find_schedule(schedule);
  if (entry == nullptr || (entry->chunks > 0 && vpp != entry->chunks) ||
      !stages_divide(subject.job.model.layers, 1, vpp, subject.axes.uneven_stages)) {
    return false;
  }
  ScheduleSize size;
  size.pp = 1;
  size.vpp = static_cast<std::int32_t>(vpp);
  size.micro_batches = static_cast<std::int32_t>(
      std::min<std::int64_t>(subject.job.global_batch_size / layout.dp / layout.micro_batch_size,
                             std::numeric_limits<std::int32_t>::max()));
  return entry->illegal == nullptr || !entry->illegal(size);
}

bool schedule_stands_before(const SearchSubject& subject, const Layout& layout) {
  const SearchAxes& axes = subject.axes;
  if (layout.pp > 1) {
    const ScheduleEntry* const entry = find_schedule(layout.schedule);
    return layout.vpp == 1 && entry != nullptr && entry->chunks != 1 &&
           holds(axes.schedules, "1f1b");
  }
  const std::int64_t own = preference(layout.schedule, layout.vpp);
  for (const std::int64_t stated : axes.vpp) {
    for (const std::string& schedule : axes.schedules) {
      const ScheduleEntry* const entry = find_schedule(schedule);
      const std::int64_t vpp = entry != nullptr && entry->chunks == 2 ? 2 : stated;
      if (preference(schedule, vpp) < own && runs_alone(subject, layout, schedule, vpp)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool is_twin(const SearchSubject& subject, const Layout& layout) {
  return layout.recompute_layers == kRecomputeAll ||  // as many are asked for by their number
         order_stands_before(subject, layout) || sharding_stands_before(subject, layout) ||
         schedule_stands_before(subject, layout);
}

}  // namespace foretrain
