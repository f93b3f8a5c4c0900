// A run that hangs, seen as its schedule: how far each pipeline rank came.
#include "sim/lower/message.h"
#include "sim/lower/vocabulary.h"
#include "sim/schedule/deadlock.h"
#include "sim/simulate/parts.h"

#include <map>
#include <utility>

namespace foretrain {
namespace {

using Heads = std::map<std::pair<std::int32_t, std::int32_t>, const BlockedTask*>;

/// Pipeline rank of an instance.
std::int32_t stage_of(const Program& program, std::int32_t instance) {
  const Instance& entry = program.instances[static_cast<std::size_t>(instance)];
  return program.templates[static_cast<std::size_t>(entry.template_index)].stage;
}

/// Actions of the schedule whose calls come before a call of the list.
std::size_t actions_before(const Program& program,
                           const Lowered& lowered,
                           const BlockedTask& blocked) {
  const std::int32_t stage = stage_of(program, blocked.instance);
  const std::vector<Action>& list = lowered.schedule.ranks[static_cast<std::size_t>(stage)];
  const Instance& instance = program.instances[static_cast<std::size_t>(blocked.instance)];
  const Template& body = program.templates[static_cast<std::size_t>(instance.template_index)];
  const bool atomic = !lowered.chunk_costs.sequential;
  std::size_t done = 0;
  for (std::int32_t call = 0; call < blocked.call && done < list.size(); ++call) {
    const Call& before = body.calls[static_cast<std::size_t>(call)];
    const Block& block = program.blocks[static_cast<std::size_t>(before.block)];
    const bool computes = before.message < 0 && before.micro_batch >= 0 &&
                          block.tasks.front().kind != TaskKind::kSend;
    done += computes ? (atomic ? unit_length(list[done]) : 1) : 0;
  }
  return done;
}

/// Follows waits from stream to stream of one rank to the one that another rank keeps.
const BlockedTask& root_of(const BlockedTask& blocked, const Heads& heads) {
  const BlockedTask* at = &blocked;
  for (std::size_t hops = 0; at->on_stream >= 0 && hops < heads.size(); ++hops) {
    const auto next = heads.find({at->instance, at->on_stream});
    if (next == heads.end()) {
      break;
    }
    at = next->second;
  }
  return *at;
}

/// `sends 0F1 to rank 1`, `receives 1B0 from rank 1`; other tasks by their own name.
std::string words_of(const Program& program, const Lowered& lowered, const BlockedTask& blocked) {
  const Instance& instance = program.instances[static_cast<std::size_t>(blocked.instance)];
  const Template& body = program.templates[static_cast<std::size_t>(instance.template_index)];
  const Call& call = body.calls[static_cast<std::size_t>(blocked.call)];
  const std::string rank = "rank " + std::to_string(stage_of(program, blocked.on_instance));
  if (call.message < 0) {
    return blocked.task + " waits for " + rank;
  }
  const Message message = message_of(lowered.schedule, call.message);
  const std::string action = to_string(message.producer);
  return message.token ? "sends " + action + " to " + rank : "receives " + action + " from " + rank;
}

}  // namespace

std::string deadlock_grid(const Program& program,
                          const Lowered& lowered,
                          const Deadlock& deadlock) {
  Heads heads;
  std::map<std::int32_t, const BlockedTask*> first;  // by pipeline rank
  for (const BlockedTask& blocked : deadlock.blocked) {
    heads[{blocked.instance, blocked.stream}] = &blocked;
    if (blocked.stream == kComputeStream) {
      first.try_emplace(stage_of(program, blocked.instance), &blocked);
    }
  }
  ListOutcome outcome;
  for (std::size_t rank = 0; rank < lowered.schedule.ranks.size(); ++rank) {
    const std::size_t actions = lowered.schedule.ranks[rank].size();
    Blocked what;
    std::size_t done = actions;
    if (const auto found = first.find(static_cast<std::int32_t>(rank)); found != first.end()) {
      const BlockedTask& root = root_of(*found->second, heads);
      done = actions_before(program, lowered, *found->second);
      what.on = stage_of(program, root.on_instance);
      what.what = words_of(program, lowered, root);
    }
    if (done == actions) {
      what = {};
    }
    outcome.end.emplace_back(done);
    outcome.blocked.push_back(what);
  }
  return blocked_grid(lowered.schedule, lowered.chunk_costs, outcome);
}

}  // namespace foretrain
