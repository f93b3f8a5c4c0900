#include "foretrain/collective.h"

namespace foretrain {

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kSendReceive:
      return "send_recv";
  }
  return "";
}

const std::string& limiting_link(CollectiveKind kind, bool across, const GroupShape& group) {
  if (!across) {
    return group.slowest_link_inside;
  }
  return kind == CollectiveKind::kAllToAll ? group.slowest_link_all_pairs
                                           : group.slowest_link_across;
}

double bus_bandwidth(CollectiveKind kind, Bytes bytes, std::int64_t ranks, Duration time) {
  if (time.count() <= 0 || ranks < 1) {
    return 0.0;
  }
  const double n = static_cast<double>(ranks);
  double factor = 1.0;  // broadcast, send_recv
  if (kind == CollectiveKind::kAllReduce) {
    factor = 2.0 * (n - 1.0) / n;
  } else if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
             kind == CollectiveKind::kAllToAll) {
    factor = (n - 1.0) / n;
  }
  return factor * static_cast<double>(bytes.value) / seconds(time);
}

}  // namespace foretrain
