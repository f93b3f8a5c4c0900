#include "sim/program/faults.h"

#include <algorithm>
#include <array>
#include <compare>
#include <set>

namespace foretrain {
namespace {

struct Message {
  std::int32_t message = -1;
  std::int32_t slot = -1;
  std::int64_t bytes = 0;
};

/// What the instances of one template bring to meetings.
struct Meetings {
  std::vector<std::int64_t> collectives;  ///< per group kind
  std::vector<Message> sends, receives;   ///< sorted by message
};

void sort_messages(std::vector<Message>& messages, const std::string& what, FaultList& faults) {
  std::stable_sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
    return a.message < b.message;
  });
  for (std::size_t m = 0; m + 1 < messages.size(); ++m) {
    if (messages[m].message == messages[m + 1].message) {
      faults.add(what + " message " + std::to_string(messages[m].message) + " more than once");
    }
  }
  if (!messages.empty() && messages.front().message < 0) {
    faults.add(what + " a message without a number");
  }
}

Meetings meetings_of(const Program& program, std::size_t index, FaultList& faults) {
  const Template& list = program.templates[index];
  Meetings result;
  result.collectives.assign(program.group_kinds.size(), 0);
  for (const Call& call : list.calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      if (task.kind == TaskKind::kCollective) {
        ++result.collectives[task.group_kind];
      } else if (task.kind == TaskKind::kSend) {
        result.sends.push_back({call.message, task.peer_slot, task.bytes});
      } else if (task.kind == TaskKind::kReceive) {
        result.receives.push_back({call.message, task.peer_slot, task.bytes});
      }
    }
  }
  const std::string place = "template " + std::to_string(index);
  sort_messages(result.sends, place + " sends", faults);
  sort_messages(result.receives, place + " receives", faults);
  return result;
}

void check_collectives(const Program& program,
                       const std::vector<Meetings>& meetings,
                       FaultList& faults) {
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    const Instance& instance = program.instances[i];
    for (std::size_t kind = 0; kind < program.group_kinds.size(); ++kind) {
      const std::int64_t own = meetings[instance.template_index].collectives[kind];
      const std::int32_t group = instance.groups[kind];
      const std::int32_t first = group < 0 ? -1 : program.groups[kind][group].front();
      if (first < 0 && own > 0) {
        faults.add({"instance", i}, program.group_kinds[kind] + " collectives without a group");
      }
      if (first < 0) {
        continue;
      }
      const std::int64_t other =
          meetings[program.instances[first].template_index].collectives[kind];
      if (own != other) {
        faults.add({"instance", i},
                   std::to_string(own) + " " + program.group_kinds[kind] +
                       " collectives, instance " + std::to_string(first) + " of the same group " +
                       std::to_string(other));
      }
    }
  }
}

/// Whether each message through a slot has its counterpart at the peer, which must name this
/// instance. Instances with like peers share the answer.
class Partners {
 public:
  Partners(const Program& program, const std::vector<Meetings>& meetings, FaultList& faults)
      : program_(program), meetings_(meetings), faults_(faults) {}

  void check(std::int32_t index) {
    const Instance& instance = program_.instances[index];
    for (int slot = 0; slot < kPeerSlots; ++slot) {
      const std::int32_t peer = instance.peers[slot];
      Key key{instance.template_index, slot, -1, {}};
      if (peer >= 0) {
        key.other = program_.instances[peer].template_index;
        for (int back = 0; back < kPeerSlots; ++back) {
          key.back[back] = program_.instances[peer].peers[back] == index;
        }
      }
      if (!checked_.insert(key).second) {
        continue;
      }
      const Meetings& own = meetings_[key.own];
      check_all(index, key, "send", own.sends, &Meetings::receives);
      check_all(index, key, "receive", own.receives, &Meetings::sends);
    }
  }

 private:
  struct Key {
    std::int32_t own = 0;
    std::int32_t slot = 0;
    std::int32_t other = -1;
    std::array<bool, kPeerSlots> back{};  ///< slots of the peer that name this instance
    auto operator<=>(const Key&) const = default;
  };

  void check_all(std::int32_t index,
                 const Key& key,
                 const std::string& verb,
                 const std::vector<Message>& own,
                 std::vector<Message> Meetings::*theirs) {
    for (const Message& message : own) {
      if (message.slot != key.slot) {
        continue;
      }
      const std::string what = verb + " of message " + std::to_string(message.message) + ": ";
      const FaultPlace place{"instance", static_cast<std::size_t>(index)};
      if (key.other < 0) {
        faults_.add(place, what + "no peer");
        continue;
      }
      const std::vector<Message>& known = meetings_[key.other].*theirs;
      const auto found = std::lower_bound(
          known.begin(), known.end(), message.message, [](const Message& a, std::int32_t number) {
            return a.message < number;
          });
      if (found == known.end() || found->message != message.message || !key.back[found->slot]) {
        faults_.add(place, what + "the peer has no counterpart");
      } else if (found->bytes != message.bytes) {
        faults_.add(place,
                    what + std::to_string(message.bytes) + " bytes, its counterpart " +
                        std::to_string(found->bytes));
      }
    }
  }

  const Program& program_;
  const std::vector<Meetings>& meetings_;
  FaultList& faults_;
  std::set<Key> checked_;
};

}  // namespace

void find_meeting_faults(const Program& program, FaultList& faults) {
  std::vector<Meetings> meetings;
  for (std::size_t t = 0; t < program.templates.size(); ++t) {
    meetings.push_back(meetings_of(program, t, faults));
  }
  check_collectives(program, meetings, faults);
  Partners partners(program, meetings, faults);
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    partners.check(static_cast<std::int32_t>(i));
  }
}

}  // namespace foretrain
