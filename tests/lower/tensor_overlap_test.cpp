// Tensor-parallel transfers cut beside their GEMMs: the closed form of a ring and of a pipelined
// reduce-scatter, what is conserved, and where cutting loses.
#include "tests/support/scenarios.h"
#include "tests/support/sent_bytes.h"

#include "sim/lower/lower.h"
#include "sim/lower/tensor_chunks.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

/// One layer on four ranks of one node.
test::TinyScenario layer_of(std::int64_t hidden, std::int64_t sequence) {
  test::TinyScenario tiny;
  tiny.layers = 1;
  tiny.hidden = hidden;
  tiny.ffn = 4 * hidden;
  tiny.sequence = sequence;
  tiny.gpus = 4;
  tiny.tp = 4;
  tiny.batch = 2;
  return tiny;
}

Lowered lowered(test::TinyScenario tiny, bool overlapped) {
  tiny.more = R"(, "overlap": {"tp": )" + std::string(overlapped ? "true" : "false") + "}";
  Expected<Lowered> result = lower(tiny.read());
  EXPECT_TRUE(result.has_value());
  return result ? *std::move(result) : Lowered{};
}

struct Sizes {
  double gather = 0,
         scatter = 0;  ///< seconds of a piece: a shard to the neighbour; S / 4 scattered
  double s = 0, h = 0, ffn = 0;
  double gemm(double n, double k) const { return 2 * s * n * k / (989e12 * 0.6); }
};

Sizes sizes_of(const test::TinyScenario& tiny) {
  Sizes sizes;
  sizes.s = static_cast<double>(tiny.sequence);
  sizes.h = static_cast<double>(tiny.hidden);
  sizes.ffn = static_cast<double>(tiny.ffn);
  const double whole = 2 * sizes.s * sizes.h;
  sizes.gather = whole / 4 / 450e9;
  sizes.scatter = whole / 4 * 3 / 4 / 450e9;
  return sizes;
}

double seconds_of(Duration time) {
  return static_cast<double>(time.count()) * 1e-12;
}

// Rule: with n pieces of GEMM time g and transfer time x, an all-gather and its GEMM take
// g + (n - 1) max(g, x) instead of (n - 1) x + n g, a GEMM and its reduce-scatter
// g + (n - 1) max(g, x) + x instead of n (g + x): (n - 1) min(g, x) less, each. Forward: qkv and up
// behind a ring of 4, output and down before a scatter of 4; backward: the gathers of the gradients
// of output and down.
TEST(TensorOverlap, SavesTheShorterOfAllPiecesButOne) {
  for (const auto& [hidden, sequence] :
       {std::pair<std::int64_t, std::int64_t>{1024, 2048}, {4096, 2048}, {8192, 512}}) {
    const test::TinyScenario tiny = layer_of(hidden, sequence);
    const ChunkCosts off = lowered(tiny, false).chunk_costs.stages.front();
    const ChunkCosts on = lowered(tiny, true).chunk_costs.stages.front();
    const Sizes at = sizes_of(tiny);
    const double rings = std::min(at.gather, at.gemm(3 * at.h / 4, at.h) / 4) +
                         std::min(at.gather, at.gemm(2 * at.ffn / 4, at.h) / 4);
    const double scatters = std::min(at.scatter, at.gemm(at.h, at.h / 4) / 4) +
                            std::min(at.scatter, at.gemm(at.h, at.ffn / 4) / 4);
    const double back = std::min(at.gather, at.gemm(at.h, at.h / 4) / 4) +
                        std::min(at.gather, at.gemm(at.h, at.ffn / 4) / 4);
    constexpr double kRounding = 40e-12;  // one picosecond a piece
    EXPECT_NEAR(seconds_of(off.forward - on.forward), 3 * (rings + scatters), kRounding) << hidden;
    EXPECT_NEAR(seconds_of(off.backward - on.backward), 3 * back, kRounding) << hidden;
  }
}

// Rule: pieces send the same bytes, do the same arithmetic and keep the same memory.
TEST(TensorOverlap, ConservesBytesFlopsAndMemory) {
  for (const char* costs : {R"({"model": "constant"})", R"("calibrated")"}) {
    for (const char* more : {"none", "full"}) {
      test::TinyScenario tiny = layer_of(1024, 2044);
      tiny.costs = std::string(costs) + R"(, "recompute": {"mode": ")" + more + "\"}";
      const Lowered off = lowered(tiny, false);
      const Lowered on = lowered(tiny, true);
      EXPECT_EQ(test::sent_by_stream(off.program), test::sent_by_stream(on.program));
      EXPECT_EQ(off.facts.model_flops, on.facts.model_flops);
      EXPECT_EQ(off.facts.recomputed_flops, on.facts.recomputed_flops);
      EXPECT_EQ(off.facts.memory.front().peak, on.facts.memory.front().peak);
      EXPECT_EQ(program_faults(on.program), std::vector<std::string>{});
      EXPECT_GT(on.program.templates.front().task_count, off.program.templates.front().task_count);
    }
  }
}

// Rule: a part of an integer is as even as integers are, and parts add up.
TEST(TensorOverlap, PartsAddUp) {
  for (const std::int64_t total : {0, 1, 7, 1000, 1023}) {
    for (std::int64_t parts = 1; parts <= 9; ++parts) {
      std::int64_t sum = 0;
      for (std::int64_t index = 0; index < parts; ++index) {
        const std::int64_t part = part_of(total, index, parts);
        EXPECT_GE(part, total / parts);
        EXPECT_LE(part, (total + parts - 1) / parts);
        sum += part;
      }
      EXPECT_EQ(sum, total);
    }
  }
}

Duration step_of(test::TinyScenario tiny, bool overlapped, Duration* exposed = nullptr) {
  tiny.more = R"(, "overlap": {"tp": )" + std::string(overlapped ? "true" : "false") + "}";
  const StepReport report = tiny.run().report;
  if (exposed != nullptr) {
    *exposed = report.breakdown.tp;
  }
  return report.step_time;
}

// Rule: no more is gained than tensor-parallel communication showed; large GEMMs gain, small ones
// lose: each piece pays its kernel's start and fills fewer of the tensor cores.
TEST(TensorOverlap, GainsAtMostWhatShowedAndLosesOnSmallGemms) {
  test::TinyScenario large = layer_of(8192, 8192);
  large.heads = large.kv_heads = 64;
  large.costs = R"("calibrated")";
  Duration shown{};
  const Duration off = step_of(large, false, &shown);
  const Duration on = step_of(large, true);
  EXPECT_LT(on, off);
  EXPECT_LT(off - on, shown);
  test::TinyScenario small = layer_of(1024, 128);
  small.costs = R"("calibrated")";
  EXPECT_GT(step_of(small, true), step_of(small, false));
}

// Rule: what user buffers cannot do is refused by name.
TEST(TensorOverlap, RefusesOtherNodesAndAllReduces) {
  const auto refused = [](test::TinyScenario tiny) {
    tiny.more = R"(, "overlap": {"tp": true})";
    std::string text;
    for (const Diagnostic& fault : not_simulated(tiny.read())) {
      text += fault.pointer + " " + fault.message + "\n";
    }
    return text;
  };
  test::TinyScenario tiny = layer_of(1024, 2048);
  EXPECT_EQ(refused(tiny), "");
  tiny.sequence_parallel = false;
  EXPECT_EQ(refused(tiny),
            "/overlap/tp overlapped tensor-parallel communication without sequence_parallel is not "
            "simulated yet\n");
  tiny.sequence_parallel = true;
  tiny.gpus = tiny.tp = 16;
  EXPECT_EQ(refused(tiny),
            "/overlap/tp overlapped tensor-parallel communication between nodes is not simulated "
            "yet\n");
  tiny.tp = 8;
  tiny.batch = 4;
  EXPECT_EQ(refused(tiny), "");
}

}  // namespace
}  // namespace foretrain
