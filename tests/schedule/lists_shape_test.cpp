#include "foretrain/schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

/// Rule: on whole grids of sizes every list has the shape its definition gives, action by action:
/// so many forwards ahead, this pattern, that tail; and each pass of a stage takes its
/// micro-batches in the stated order. Shape and order together leave nothing open.
namespace foretrain {
namespace {

std::string times(std::int64_t count, const std::string& text) {
  std::string all;
  for (std::int64_t i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

/// "FaFb(FaBb)IaWa": kinds, in brackets where overlapped, each with the letter of its chunk: a for
/// the rank's lowest stage. Without letters where a rank has one chunk of one copy.
std::string shape(const Schedule& schedule, std::size_t rank) {
  const bool lettered = schedule.size.vpp > 1 || schedule.copies() > 1;
  const std::vector<Action>& list = schedule.ranks[rank];
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Action& action = list[i];
    const int p = schedule.size.pp;
    const bool late = action.copy >= 0 ? action.stage >= p / 2 : action.stage >= p;
    text += list[i].overlapped ? "(" : "";
    text += "FBIW"[static_cast<std::size_t>(action.kind)];
    text += lettered ? (late ? "b" : "a") : "";
    text += i > 0 && list[i - 1].overlapped ? ")" : "";
  }
  return text;
}

/// Each (pass, copy, stage) in order 0, 1, 2, ...; a backward and an input gradient are one pass.
void expect_in_order(const Schedule& schedule) {
  std::map<std::tuple<bool, bool, int, int>, int> last;
  for (const auto& list : schedule.ranks) {
    for (const Action& action : list) {
      const bool forward = action.kind == ActionKind::kForward;
      const bool weights = action.kind == ActionKind::kWeightGradient;
      const auto [at, fresh] =
          last.try_emplace({forward, weights, action.copy, action.stage}, action.micro_batch - 1);
      EXPECT_LT(at->second, action.micro_batch) << to_string(action);
      at->second = action.micro_batch;
    }
  }
}

/// Checks the shape of every rank and the order of micro-batches.
template <typename ShapeOfRank>
void expect_shape(const char* name, const ScheduleSize& size, ShapeOfRank shape_of_rank) {
  SCOPED_TRACE(name + (" p " + std::to_string(size.pp)) + " m " +
               std::to_string(size.micro_batches));
  const Expected<Schedule> schedule = make_schedule(name, size);
  ASSERT_TRUE(schedule.has_value());
  expect_in_order(*schedule);
  for (int rank = 0; rank < size.pp; ++rank) {
    EXPECT_EQ(shape(*schedule, static_cast<std::size_t>(rank)), shape_of_rank(rank)) << rank;
  }
}

std::string pairs(int all, int ahead, const std::string& pair) {
  const int w = std::min(all, ahead);
  return times(w, "F") + times(all - w, pair) + times(w, "B");
}

TEST(Shape, OneChunkWholeBackwards) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const ScheduleSize size{.pp = p, .micro_batches = m};
      expect_shape("gpipe", size, [&](int) { return times(m, "F") + times(m, "B"); });
      expect_shape("1f1b", size, [&](int r) { return pairs(m, p - 1 - r, "FB"); });
      expect_shape("eager-1f1b", size, [&](int r) { return pairs(m, 2 * (p - 1 - r), "FB"); });
      expect_shape(
          "1f1b-overlap", size, [&](int r) { return pairs(m, 2 * (p - 1 - r) + 1, "(FB)"); });
    }
  }
}

// As the papers tell it: of ZB-H1 a forward, an input gradient, and from the r-th on a weight
// gradient in turn; of ZB-H2 2 (p-r) - 1 forwards, then an input gradient, from the 2r-th on a
// weight gradient, a forward.
TEST(Shape, ZeroBubble) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 24; ++m) {
      const ScheduleSize size{.pp = p, .micro_batches = m};
      expect_shape("zb-h1", size, [&](int r) {
        std::string text = times(std::min(m, p - 1 - r), "F");
        for (int k = 0; k < m; ++k) {
          text += k + p - 1 - r < m ? "FI" : "I";
          text += k >= r ? "W" : "";
        }
        return text + times(std::min(m, r), "W");
      });
      expect_shape("zb-h2", size, [&](int r) {
        std::string text = times(std::min(m, 2 * (p - r) - 1), "F");
        for (int k = 0; k < m; ++k) {
          text += k >= 2 * r ? "IW" : "I";
          text += k + 2 * (p - r) - 1 < m ? "F" : "";
        }
        return text + times(std::min(m, 2 * r), "W");
      });
    }
  }
}

// The seven steps with their counts worked out for m >= 2p - 1.
TEST(Shape, ZbV) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p - 1; m <= 24; ++m) {
      expect_shape("zb-v", {.pp = p, .micro_batches = m, .vpp = 2}, [&](int r) {
        return times(2 * (p - r) - 1, "Fa") + times(r, "FbFa") + times(p - r, "FbIbWb") +
               times(m - (2 * p - 1 - r), "FaIaWaFbIbWb") + times(p - 1 - r, "IaWaFbIbWb") +
               times(r, "IaIb") + times(p - r, "IaWa") + times(r, "Wb") + times(r, "Wa");
      });
    }
  }
}

/// The eight steps of DualPipe on a rank d hops from its end of h ranks, with `more` pairs than the
/// least: chunk a's forwards reach it early, chunk b's late. Weight gradients go first in, first
/// out.
std::string dualpipe_steps(int d, int h, int more) {
  const int rest = h - 1 - d;
  const std::string first_pair = rest == 0 ? "FaBb(FbBa)" : "(FaBb)(FbBa)";
  const std::string owed = times(d % 2 == 0, "a") + times((d + 1) / 2, "ba") + times(rest, "a");
  std::string text = times(2 * rest, "Fa") + times(d + 1, "FaFb") + times(rest, "IbWbFb");
  text += first_pair + times(more + d, "(FaBb)(FbBa)") + times(rest, "Bb(FbBa)");
  text += times((d + 1) / 2, "BbBa") + times(d % 2 == 0, "BbIa") + times((d + 1) / 2, "IbIa");
  for (std::size_t i = 0; i < owed.size(); ++i) {
    text += std::string("W") + owed[i] + times(i < static_cast<std::size_t>(rest), "Ia");
  }
  return text;
}

TEST(Shape, DualPipeV) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p; m <= 4 * p + 3; ++m) {
      expect_shape("dualpipev", {.pp = p, .micro_batches = m, .vpp = 2}, [&](int r) {
        return dualpipe_steps(r, p, m - 2 * p);
      });
    }
  }
}

TEST(Shape, DualPipe) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2 * p; m <= 4 * p + 4; m += 2) {
      expect_shape("dualpipe", {.pp = p, .micro_batches = m}, [&](int r) {
        return dualpipe_steps(std::min(r, p - 1 - r), p / 2, m / 2 - p);
      });
    }
  }
}

/// The i-th pass of a rank over its chunks in groups of g, the last short: by arithmetic on i
/// alone.
std::string grouped(char kind, int i, int rank, int g, const ScheduleSize& size) {
  const int v = size.vpp;
  const int full = size.micro_batches / g * g;
  const bool last = i >= full * v;
  const int begin = last ? full * v : i / (g * v) * (g * v);
  const int width = last ? size.micro_batches - full : g;
  const int turn = (i - begin) / width;
  const int chunk = kind == 'F' ? turn : v - 1 - turn;
  return std::to_string(chunk * size.pp + rank) + kind +
         std::to_string(begin / v + (i - begin) % width) + ",";
}

/// Rows of a looped schedule whose groups hold g, told pass by pass.
template <typename RowOfRank>
void expect_rows(const char* name, const ScheduleSize& size, RowOfRank row_of_rank) {
  const Expected<Schedule> schedule = make_schedule(name, size);
  ASSERT_TRUE(schedule.has_value());
  std::string rows;
  for (int rank = 0; rank < size.pp; ++rank) {
    rows += row_of_rank(rank);
    rows.back() = '\n';
  }
  EXPECT_EQ(schedule_csv(*schedule), rows) << name;
}

// Megatron's: (v-1) g + 2 (p-1-r) forwards, one more before overlapped units; PyTorch's zero-bubble
// form: (v-1) g + p-1-r, and weight gradients r behind over all chunks.
TEST(Shape, Loops) {
  for (int p = 1; p <= 5; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m = p; m <= 13; ++m) {
        for (int g = p; g <= m; ++g) {
          if (m % g != 0 && m % g < p) {
            continue;
          }
          const ScheduleSize size{.pp = p, .micro_batches = m, .vpp = v, .group = g};
          const int n = m * v;
          expect_rows("interleaved", size, [&](int r) {
            const int w = std::min(n, (v - 1) * g + 2 * (p - 1 - r));
            std::string row;
            for (int i = 0; i < n + w; ++i) {
              row += i < n ? grouped('F', i, r, g, size) : "";
              row += i >= w ? grouped('B', i - w, r, g, size) : "";
            }
            return row;
          });
          expect_rows("interleaved-overlap", size, [&](int r) {
            const int w = std::min(n, (v - 1) * g + 2 * (p - 1 - r) + 1);
            std::string row;
            for (int i = 0; i < n + w; ++i) {
              std::string forward = i < n ? grouped('F', i, r, g, size) : "";
              const std::string backward = i >= w ? grouped('B', i - w, r, g, size) : "";
              if (!forward.empty() && !backward.empty()) {
                forward.back() = ';';
                row += "(" + forward + backward;
                row.back() = ')';
                row += "OVERLAP_F_B,";
              } else {
                row += forward + backward;
              }
            }
            return row;
          });
        }
      }
    }
  }
}

TEST(Shape, ZbInterleaved) {
  for (int p = 1; p <= 5; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 16; ++m) {
        const int rounds = std::max(1, m / p);
        if (m % rounds != 0) {
          continue;
        }
        const int g = m / rounds;
        const int n = m * v;
        const ScheduleSize size{.pp = p, .micro_batches = m, .vpp = v};
        expect_rows("zb-interleaved", size, [&](int r) {
          const int w = std::min(n, (v - 1) * g + p - 1 - r);
          std::string row;
          for (int i = 0; i < w; ++i) {
            row += grouped('F', i, r, g, size);
          }
          for (int k = 0; k < n + r; ++k) {
            row += w + k < n ? grouped('F', w + k, r, g, size) : "";
            row += k < n ? grouped('I', k, r, g, size) : "";
            row += k >= r ? grouped('W', k - r, r, g, size) : "";
          }
          return row;
        });
      }
    }
  }
}

}  // namespace
}  // namespace foretrain
