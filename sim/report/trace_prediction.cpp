#include "foretrain/report.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace foretrain {
namespace {

/// A step of one instance as if nothing ever waited: enough to know how many digits times have.
Timeline uncontended_step(const Program& program, std::int32_t instance_index, Duration delay) {
  const Instance& instance = program.instances[static_cast<std::size_t>(instance_index)];
  const Template& list = program.templates[static_cast<std::size_t>(instance.template_index)];
  const Duration receive{100'000'000};
  std::vector<Instant> free_at(program.streams.size(), Instant{} + delay);
  Timeline timeline;
  timeline.instance_step_ends.resize(program.instances.size());
  auto& ends = timeline.instance_step_ends[static_cast<std::size_t>(instance_index)];
  ends.push_back(Instant{});
  for (std::size_t c = 0; c < list.calls.size(); ++c) {
    const Block& block = program.blocks[static_cast<std::size_t>(list.calls[c].block)];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const std::int64_t work =
          std::accumulate(task.work.begin(), task.work.end(), std::int64_t{0});
      Instant& clock = free_at[static_cast<std::size_t>(task.stream)];
      const Instant start = std::max(clock, free_at[0]);
      clock = start + (task.kind == TaskKind::kReceive ? receive : Duration{work});
      timeline.spans.push_back({instance_index,
                                0,
                                static_cast<std::int32_t>(c),
                                static_cast<std::int32_t>(t),
                                start,
                                start,
                                clock});
    }
  }
  ends.push_back(*std::max_element(free_at.begin(), free_at.end()));
  return timeline;
}

std::int64_t trace_size(const Program& program, const Timeline& timeline) {
  return static_cast<std::int64_t>(chrome_trace(program, timeline, {}).size());
}

/// Sends of one step of a template per peer slot; each is an arrow when both ends are shown.
std::array<std::int64_t, kPeerSlots> sends_of(const Program& program, const Template& list) {
  std::array<std::int64_t, kPeerSlots> sends{};
  for (const Call& call : list.calls) {
    for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
      if (task.kind == TaskKind::kSend && task.peer_slot >= 0) {
        ++sends[static_cast<std::size_t>(task.peer_slot)];
      }
    }
  }
  return sends;
}

}  // namespace

std::int64_t predict_trace_bytes(const Program& program,
                                 const std::vector<std::int32_t>& instances,
                                 int steps) {
  struct TemplateSize {
    std::int64_t tracks = 0;  ///< metadata, once
    std::int64_t step = 0;    ///< each step
    std::array<std::int64_t, kPeerSlots> sends{};
  };
  constexpr std::int64_t kArrowBytes = 180;  // an "s" and an "f" event
  const std::int64_t header = trace_size(program, Timeline{});
  std::map<std::int32_t, TemplateSize> sizes;
  std::vector<bool> shown(program.instances.size(), false);
  for (const std::int32_t index : instances) {
    shown[static_cast<std::size_t>(index)] = true;
  }
  std::int64_t total = header;
  for (const std::int32_t index : instances) {
    const Instance& instance = program.instances[static_cast<std::size_t>(index)];
    auto found = sizes.find(instance.template_index);
    if (found == sizes.end()) {
      const Timeline first = uncontended_step(program, index, Duration{0});
      const auto& ends = first.instance_step_ends[static_cast<std::size_t>(index)];
      const Duration middle = (ends.back() - ends.front()) * (steps - 1) / 2;
      Timeline alone = first;
      alone.spans.resize(std::min<std::size_t>(1, first.spans.size()));
      TemplateSize size;
      size.tracks = trace_size(program, alone) - header;
      size.step = trace_size(program, uncontended_step(program, index, middle)) - header;
      size.sends =
          sends_of(program, program.templates[static_cast<std::size_t>(instance.template_index)]);
      found = sizes.emplace(instance.template_index, size).first;
    }
    const TemplateSize& size = found->second;
    total += size.step + (steps - 1) * std::max<std::int64_t>(0, size.step - size.tracks);
    for (std::size_t slot = 0; slot < kPeerSlots; ++slot) {
      const std::int32_t peer = instance.peers[slot];
      if (peer >= 0 && shown[static_cast<std::size_t>(peer)]) {
        total += steps * size.sends[slot] * kArrowBytes;
      }
    }
  }
  return total;
}

}  // namespace foretrain
