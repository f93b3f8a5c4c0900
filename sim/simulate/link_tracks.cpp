#include "sim/lower/link_traffic.h"
#include "sim/simulate/parts.h"

#include <algorithm>
#include <map>

namespace foretrain {
namespace {

/// Transfers of a template's tasks over one link: weight by group kind and peer slot.
struct ClassCrossings {
  std::map<std::int32_t, double> kinds;
  std::array<double, kPeerSlots> slots{};

  double weight(const Task& task) const {
    if (task.kind == TaskKind::kCollective) {
      const auto found = kinds.find(task.group_kind);
      return found == kinds.end() ? 0.0 : found->second;
    }
    return task.kind == TaskKind::kSend ? slots[static_cast<std::size_t>(task.peer_slot)] : 0.0;
  }
};

}  // namespace

LinkTrack link_track(const Program& program,
                     const Timeline& timeline,
                     const std::vector<std::int32_t>& class_of,
                     const std::vector<LinkCrossing>& crossings,
                     const Link& link) {
  // Ranks of one class send alike, so their shares of the link add up.
  std::map<std::int32_t, ClassCrossings> classes;
  for (const LinkCrossing& crossing : crossings) {
    ClassCrossings& of = classes[class_of[static_cast<std::size_t>(crossing.rank)]];
    if (crossing.group_kind >= 0) {
      of.kinds[crossing.group_kind] += crossing.weight;
    } else {
      of.slots[static_cast<std::size_t>(crossing.peer_slot)] += crossing.weight;
    }
  }
  std::map<Instant, double> changes;
  for (const Span& span : timeline.spans) {
    const auto crosses = classes.find(span.instance);
    if (crosses == classes.end() || span.end <= span.transfer_start) {
      continue;
    }
    const Instance& instance = program.instances[static_cast<std::size_t>(span.instance)];
    const Call& call = program.templates[static_cast<std::size_t>(instance.template_index)]
                           .calls[static_cast<std::size_t>(span.call)];
    const Task& task = program.blocks[static_cast<std::size_t>(call.block)]
                           .tasks[static_cast<std::size_t>(span.task)];
    const double bytes = crosses->second.weight(task) * static_cast<double>(task.bytes);
    if (bytes > 0) {
      const double rate = bytes / seconds(span.end - span.transfer_start);
      changes[span.transfer_start] += rate;
      changes[span.end] -= rate;
    }
  }
  LinkTrack track;
  track.id = link.id;
  track.bandwidth = static_cast<double>(link.capacity.bytes_per_second);
  double rate = 0;
  for (const auto& [time, change] : changes) {
    rate += change;
    // Rounding may leave a few bytes a second of either sign where nothing runs.
    track.rates.emplace_back(time, rate < 1.0 ? 0.0 : rate);
  }
  return track;
}

}  // namespace foretrain
