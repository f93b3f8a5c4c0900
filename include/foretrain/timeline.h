#pragma once

#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// What happened when a Program ran.
namespace foretrain {

/// One executed task of a recorded instance.
struct Span {
  std::int32_t instance = 0;
  std::int32_t step = 0;
  std::int32_t call = 0;     ///< index into Template::calls
  std::int32_t task = 0;     ///< local index in the block
  Instant start{};           ///< when its stream was given to it (a collective: own arrival)
  Instant transfer_start{};  ///< collectives: the latest member's arrival; else == start
  Instant end{};
};

/// Sums over the measured steps for one instance. Its window runs from the end of its step before
/// the first measured one to the end of its last: busy + exposed + host + idle == window, exactly.
/// busy: stream 0 from start (a collective: from the begin of its transfer) to end; a receive or a
/// late member there is idle time. A gap before a task of stream 0 belongs to what the task waited
/// for last (ties: dependencies before the host, then the lowest stream): the host; a stream of
/// role kCollective, then the part its transfers cover is exposed and the rest idle; else idle.
/// transfer, member_wait, bytes, point_to_point and received count the tasks of measured steps;
/// the first three those on streams of role kCollective (a kLocal task there is a transfer too).
struct RankAccount {
  Duration window{};
  std::vector<Duration> busy;     ///< per busy account, primary stream
  std::vector<Duration> exposed;  ///< per exposed account: primary stream idle during its transfers
  std::vector<Duration> transfer;  ///< per exposed account: all transfer time on its streams
  std::vector<Duration>
      member_wait;  ///< per exposed account: waiting for late members, on its streams
  std::vector<std::int64_t> bytes;        ///< per exposed account, sent
  Duration point_to_point{};              ///< transfer time of sends
  std::int64_t point_to_point_bytes = 0;  ///< sent
  std::int64_t received_bytes = 0;
  Duration host{};  ///< primary stream idle because the host had not launched
  Duration idle{};  ///< the rest: waiting for peers and late members
};

struct Timeline {
  std::vector<Instant> step_ends;  ///< latest step end over instances, measured steps, from -1 on
  std::vector<std::vector<Instant>> instance_step_ends;  ///< the same, [instance][step]
  Instant isolated_end{};             ///< end of everything when one cold step runs alone
  std::vector<RankAccount> accounts;  ///< per instance
  std::vector<Span> spans;         ///< recorded instances, measured steps; by instance, then start
  std::int64_t tasks = 0;          ///< tasks evaluated, warm-up included
  std::vector<double> link_bytes;  ///< per shared link, over the measured steps; of one such link
};

/// A run that cannot go on: who waits for what.
struct BlockedTask {
  std::int32_t instance = 0;
  std::int32_t rank = 0;
  std::string task;         ///< e.g. "3F5 pp receive"
  std::string waiting_for;  ///< e.g. "send of message 12 by rank 7"
  std::int32_t stream = 0;
  std::int32_t call = 0;          ///< index into Template::calls
  std::int32_t on_instance = -1;  ///< whose stream would have to go on first
  std::int32_t on_stream = -1;    ///< of the own instance; -1 where it is another's
};
struct Deadlock {
  std::vector<BlockedTask> blocked;
};

using RunResult = std::variant<Timeline, Deadlock>;

}  // namespace foretrain
