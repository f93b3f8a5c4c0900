#include "foretrain/schedule.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include <gtest/gtest.h>

/// Rule: with rendezvous transfers both ranks stand still until a transfer is done. Times are those
/// of small cases by hand, of closed forms, and of a longest path through all pieces and transfers
/// that shares no code with the library; a circle in that graph is a deadlock.
namespace foretrain {
namespace {

ScheduleCosts rendezvous(std::int64_t forward, std::int64_t backward, std::int64_t p2p) {
  ScheduleCosts costs{.stages = {{Duration{forward}, Duration{backward}}}, .p2p = Duration{p2p}};
  costs.stages.front().input_gradient = Duration{forward};
  costs.stages.front().weight_gradient = Duration{backward > forward ? backward - forward : 1};
  costs.mode = PointToPoint::kRendezvous;
  return costs;
}

Schedule built(std::string_view name, const ScheduleSize& size) {
  Expected<Schedule> schedule = make_schedule(name, size);
  EXPECT_TRUE(schedule.has_value()) << name;
  return schedule ? *std::move(schedule) : Schedule{};
}

std::int64_t makespan(const Schedule& schedule, const ScheduleCosts& costs) {
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  return timing ? timing->makespan.count() : -1;
}

struct Node {
  std::int64_t cost = 0;
  std::int64_t start = 0;
  int inputs = 0;
  std::vector<std::size_t> next;
};

/// Nodes are pieces, transfers, and both ends of each exchange between two pieces of a rank.
class Graph {
 public:
  Graph(const Schedule& schedule, const ScheduleCosts& costs) : schedule_(schedule), costs_(costs) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      add_rank(static_cast<int>(rank));
    }
  }

  /// Start of each piece's first action, per rank; empty when there is a circle.
  std::vector<std::vector<std::int64_t>> starts() {
    std::queue<std::size_t> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].inputs == 0) {
        ready.push(i);
      }
    }
    std::size_t seen = 0;
    for (; !ready.empty(); ready.pop(), ++seen) {
      const Node& node = nodes_[ready.front()];
      for (const std::size_t to : node.next) {
        nodes_[to].start = std::max(nodes_[to].start, node.start + node.cost);
        if (--nodes_[to].inputs == 0) {
          ready.push(to);
        }
      }
    }
    std::vector<std::vector<std::int64_t>> all;
    for (const std::vector<std::size_t>& pieces : pieces_) {
      std::vector<std::int64_t>& starts = all.emplace_back();
      for (const std::size_t piece : pieces) {
        starts.push_back(nodes_[piece].start);
      }
    }
    return seen == nodes_.size() ? all : std::vector<std::vector<std::int64_t>>{};
  }

 private:
  using Key = std::tuple<int, int, int, int, bool>;  // copy, stage, micro-batch, slice, gradient

  std::size_t add(std::int64_t cost) {
    nodes_.push_back({cost, 0, 0, {}});
    return nodes_.size() - 1;
  }
  void connect(std::size_t from, std::size_t to) {
    nodes_[from].next.push_back(to);
    ++nodes_[to].inputs;
  }
  /// The node of a value: its transfer, or the moment it exists on its own rank.
  std::size_t value(const Key& key, bool crosses) {
    const auto [found, is_new] = values_.try_emplace({key, crosses}, 0);
    if (is_new) {
      found->second = add(crosses ? costs_.p2p.count() : 0);
    }
    return found->second;
  }
  int owner(int stage, int copy) const {
    const int place = stage % schedule_.size.pp;
    const bool turned =
        copy == 1 || (schedule_.placement == Placement::kV && stage / schedule_.size.pp % 2 == 1);
    return turned ? schedule_.size.pp - 1 - place : place;
  }
  static bool gradient(const Action& action) { return action.kind != ActionKind::kForward; }
  Key key(const Action& action, int stage, int slice, bool of_gradient) const {
    return {std::max<int>(0, action.copy), stage, action.micro_batch, slice, of_gradient};
  }

  /// Values an action takes and gives; `crosses` of each.
  std::vector<std::pair<Key, bool>> inputs(const Action& action) const {
    std::vector<std::pair<Key, bool>> found;
    if (action.kind == ActionKind::kWeightGradient) {
      return found;
    }
    const int copy = std::max<int>(0, action.copy);
    const int last = schedule_.size.pp * schedule_.size.vpp - 1;
    const int from = action.stage + (gradient(action) ? 1 : -1);
    const int slices = schedule_.size.slices;
    if (from >= 0 && from <= last) {
      found.emplace_back(key(action, from, action.slice, gradient(action)),
                         owner(from, copy) != owner(action.stage, copy));
    }
    if (action.stage == last && gradient(action)) {
      found.emplace_back(key(action, last, action.slice, false), false);
    }
    const int neighbour = action.slice + (gradient(action) ? 1 : -1);
    if (action.slice >= 0 && neighbour >= 0 && neighbour < slices) {
      found.emplace_back(key(action, action.stage, neighbour, gradient(action)), false);
    }
    return found;
  }

  std::int64_t cost(const std::vector<Action>& list, std::size_t at, std::size_t length) const {
    std::int64_t sum = 0;
    for (std::size_t i = at; i < at + length; ++i) {
      const ChunkCosts& chunk = costs_.stages.front();
      switch (list[i].kind) {
        case ActionKind::kForward:
          sum += chunk.forward.count();
          break;
        case ActionKind::kBackward:
          sum += chunk.backward.count();
          break;
        case ActionKind::kInputGradient:
          sum += chunk.input_gradient.count();
          break;
        case ActionKind::kWeightGradient:
          sum += chunk.weight_gradient.count();
          break;
      }
    }
    return sum;
  }

  /// Strings an exchange of transfers between two nodes: side by side, or one after another.
  std::size_t exchange(std::size_t from, const std::vector<std::size_t>& transfers) {
    const std::size_t entry = add(0);
    const std::size_t after = add(0);
    connect(from, entry);
    connect(entry, after);
    std::size_t before = entry;
    for (const std::size_t transfer : transfers) {
      connect(before, transfer);
      connect(transfer, after);
      before = costs_.batched ? entry : transfer;
    }
    return after;
  }

  void add_rank(int rank) {
    const std::vector<Action>& list = schedule_.ranks[static_cast<std::size_t>(rank)];
    std::vector<std::size_t>& pieces = pieces_.emplace_back();
    std::size_t before = add(0);
    std::vector<std::size_t> transfers;  // sends of the piece before
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t length = list[at].overlapped && !costs_.sequential ? 2 : 1;
      const std::size_t piece = add(cost(list, at, length));
      std::vector<std::size_t> sends;
      for (std::size_t i = at; i < at + length; ++i) {
        for (const auto& [from, crosses] : inputs(list[i])) {
          if (crosses) {
            transfers.push_back(value(from, true));
          } else {
            connect(value(from, false), piece);
          }
        }
        give(list[i], piece, sends);
      }
      connect(exchange(before, transfers), piece);
      pieces.push_back(piece);
      transfers = sends;
      before = piece;
      at += length;
    }
    exchange(before, transfers);
  }

  /// What an action gives, to its own rank and to at most one other.
  void give(const Action& action, std::size_t piece, std::vector<std::size_t>& sends) {
    if (action.kind == ActionKind::kWeightGradient) {
      return;
    }
    const int copy = std::max<int>(0, action.copy);
    const int last = schedule_.size.pp * schedule_.size.vpp - 1;
    const int to = action.stage + (gradient(action) ? -1 : 1);
    const Key mine = key(action, action.stage, action.slice, gradient(action));
    connect(piece, value(mine, false));
    if (to >= 0 && to <= last && owner(to, copy) != owner(action.stage, copy)) {
      sends.push_back(value(mine, true));
    }
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  std::vector<Node> nodes_;
  std::map<std::pair<Key, bool>, std::size_t> values_;
  std::vector<std::vector<std::size_t>> pieces_;
};

/// Compares every start with the graph's; returns whether the lists run to their end.
bool same_as_graph(const Schedule& schedule, const ScheduleCosts& costs) {
  const std::vector<std::vector<std::int64_t>> expected = Graph(schedule, costs).starts();
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  EXPECT_EQ(timing.has_value(), !expected.empty());
  EXPECT_EQ(find_deadlock(schedule, costs).has_value(), expected.empty());
  for (std::size_t rank = 0; timing && rank < expected.size(); ++rank) {
    const std::vector<Action>& list = schedule.ranks[rank];
    std::size_t piece = 0;
    for (std::size_t at = 0; at < list.size(); ++piece) {
      const Instant start = timing->start[rank][at];
      EXPECT_EQ(start.time_since_epoch().count(), expected[rank].at(piece));
      at += list[at].overlapped && !costs.sequential ? 2 : 1;
    }
  }
  return timing.has_value();
}

// By hand, p = 2, m = 2, F = 1, B = 2, c = 1. Rank 0: F0 0-1, sends 1-2, F1 2-3, sends F1 3-4 and
// stands until B0 is there. Rank 1: F0 2-3, F1 4-5, B0 5-7, sends 7-8, B1 8-10, sends 10-11.
// Rank 0: B0 8-10, B1 11-13. Eager transfers take 11.
TEST(Rendezvous, GpipeByHand) {
  const Schedule schedule = built("gpipe", {.pp = 2, .micro_batches = 2});
  ScheduleCosts costs = rendezvous(1, 2, 1);
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  ASSERT_TRUE(timing.has_value());
  std::vector<std::vector<std::int64_t>> starts(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const Instant start : timing->start[rank]) {
      starts[rank].push_back(start.time_since_epoch().count());
    }
  }
  EXPECT_EQ(starts[0], (std::vector<std::int64_t>{0, 2, 8, 11}));
  EXPECT_EQ(starts[1], (std::vector<std::int64_t>{2, 4, 5, 8}));
  EXPECT_EQ(timing->makespan.count(), 13);
  costs.mode = PointToPoint::kEager;
  EXPECT_EQ(makespan(schedule, costs), 11);
}

// Every rank stands still for each transfer it takes part in. Batched, the send of one micro-batch
// and the receive of the next are one stop: a forward every F + c, so each half lasts
// (m + p - 1) F + (m + p - 2) c. Unbatched they are two where a rank has both, from p = 3 on.
TEST(Rendezvous, GpipeClosedForm) {
  for (int p = 2; p <= 7; ++p) {
    for (int m = 1; m <= 9; ++m) {
      const Schedule schedule = built("gpipe", {.pp = p, .micro_batches = m});
      ScheduleCosts costs = rendezvous(3, 5, 2);
      EXPECT_EQ(makespan(schedule, costs), (m + p - 1) * 8 + 2 * 2 * (m + p - 2));
      costs.batched = false;
      const int stops = p == 2 ? m : p - 1 + 2 * (m - 1);
      EXPECT_EQ(makespan(schedule, costs), (m + p - 1) * 8 + 2 * 2 * stops) << p << " " << m;
    }
  }
}

// By hand, p = 2, m = 2, F = 1, B = 2, c = 1: both ranks stand at 5-6, where F1 and B0 cross.
TEST(Rendezvous, CrossingTransfersNeedABatch) {
  const Schedule schedule = built("1f1b", {.pp = 2, .micro_batches = 2});
  ScheduleCosts costs = rendezvous(1, 2, 1);
  EXPECT_EQ(makespan(schedule, costs), 12);
  costs.batched = false;
  EXPECT_EQ(find_deadlock(schedule, costs),
            "deadlock after 4 of 8 actions; [ ] marks what cannot start:\n"
            "  rank 0: 0F0 0F1 [0B0] 0B1   sends 0F1 to rank 1\n"
            "  rank 1: 1F0 1B0 [1F1] 1B1   sends 1B0 to rank 0\n"
            "  circle: rank 0 sends 0F1 to rank 1, which sends 1B0 to rank 0");
  EXPECT_FALSE(time_schedule(schedule, costs));
  for (int p = 2; p <= 6; ++p) {
    const Schedule larger = built("1f1b", {.pp = p, .micro_batches = 2 * p});
    EXPECT_FALSE(find_deadlock(larger, rendezvous(1, 2, 1)));
    EXPECT_TRUE(find_deadlock(larger, costs)) << p;
  }
}

TEST(Rendezvous, OneRankHasNoTransfers) {
  for (const bool batched : {true, false}) {
    ScheduleCosts costs = rendezvous(1, 2, 100);
    costs.batched = batched;
    EXPECT_EQ(makespan(built("1f1b", {.pp = 1, .micro_batches = 5}), costs), 15);
  }
}

// An action whose input its own rank computes later; the circle has one member.
TEST(Rendezvous, WaitingForOneself) {
  const Expected<Schedule> schedule = parse_schedule_csv("0F0,1B0,1F0,0B0\n");
  EXPECT_FALSE(schedule);  // a backward before its own forward
  const Expected<Schedule> loop = parse_schedule_csv("1F0,0F0,1B0,0B0\n");
  ASSERT_TRUE(loop.has_value());
  for (const PointToPoint mode : {PointToPoint::kEager, PointToPoint::kRendezvous}) {
    const std::optional<std::string> grid = find_deadlock(*loop, {.mode = mode});
    ASSERT_TRUE(grid.has_value());
    EXPECT_NE(grid->find("rank 0: [1F0] 0F0 1B0 0B0   waits for 0F0, later in its own list"),
              std::string::npos)
        << *grid;
  }
}

// All schedules, both ways of posting, both kinds of overlapped units: the graph's times, never
// before the eager ones. On two ranks the peers of both neighbours are one and the same.
TEST(Rendezvous, EveryScheduleAsTheGraphHasIt) {
  int ends = 0;
  int deadlocks = 0;
  for (const ScheduleEntry& entry : schedule_table()) {
    for (int p = 1; p <= 5; ++p) {
      for (const int m : {p, 2 * p, 3 * p + 1, 4 * p}) {
        const Expected<Schedule> schedule =
            make_schedule(entry.name,
                          {.pp = p,
                           .micro_batches = m,
                           .vpp = entry.chunks > 0 ? entry.chunks : 2,
                           .slices = entry.uses_slices ? 2 : 1});
        if (!schedule) {
          continue;
        }
        for (const int variant : {0, 1, 2, 3}) {
          SCOPED_TRACE(std::string(entry.name) + " p " + std::to_string(p) + " m " +
                       std::to_string(m) + " variant " + std::to_string(variant));
          ScheduleCosts costs = rendezvous(3, 5, 2);
          costs.batched = variant % 2 == 0;
          costs.sequential = variant > 1;
          const bool complete = same_as_graph(*schedule, costs);
          ++(complete ? ends : deadlocks);
          const std::int64_t time = makespan(*schedule, costs);
          costs.mode = PointToPoint::kEager;
          EXPECT_TRUE(!complete || time >= makespan(*schedule, costs));
        }
      }
    }
  }
  EXPECT_GT(ends, 400);
  EXPECT_GT(deadlocks, 100);
}

}  // namespace
}  // namespace foretrain
