#include "tests/support/pipelines.h"
#include "tests/support/sent_bytes.h"

#include "sim/lower/lower.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: a schedule orders the step's work and changes none of it: FLOPs, bytes of every group and
/// of every message, memory. The formulas know the layout and the placement, and no operator.
namespace foretrain {
namespace {

using test::kSmallExperts;
using test::read_with;
using test::sent_by_stream;

constexpr std::int64_t kHidden = 512, kExpertWidth = 256, kExperts = 16, kTopK = 2;
constexpr std::int64_t kLayers = 8, kVocabulary = 32000, kHeads = 8, kHeadDim = 64;
constexpr std::int64_t kSequence = 1024, kMicroBatches = 8;

/// A layout under a schedule; 8 micro-batches on every pipeline.
struct Layout {
  ScheduleEntry entry;
  std::int64_t tp, cp, ep, dp, pp;
  std::string sharding;

  std::int64_t vpp() const { return entry.chunks == 0 ? 2 : entry.chunks; }
  std::int64_t slices() const { return entry.uses_slices && cp == 1 ? 4 : 1; }
  std::int64_t copies() const { return copies_of(entry.placement); }
  std::int64_t columns() const { return tp * cp * dp; }  ///< ranks of a stage
  std::int64_t edp() const { return columns() / ep; }    ///< etp 1

  std::vector<std::string> sets() const {
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    return {"cluster.gpus=" + n(columns() * pp),
            "model.num_hidden_layers=" + n(kLayers),
            "training.global_batch_size=" + n(kMicroBatches * dp),
            "parallelism.tp=" + n(tp),
            "parallelism.cp=" + n(cp),
            "parallelism.ep=" + n(ep),
            "parallelism.pp=" + n(pp),
            "parallelism.vpp=" + n(vpp()),
            "parallelism.sharding=" + sharding,
            "schedule=" + std::string(entry.name),
            "schedule.slices=" + n(slices()),
            "stack.gradient_reduction=micro_batch"};
  }
};

bool legal(const Layout& at) {
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(at.pp);
  size.micro_batches = static_cast<std::int32_t>(kMicroBatches);
  size.vpp = static_cast<std::int32_t>(at.vpp());
  size.slices = static_cast<std::int32_t>(at.slices());
  // Units gathered inside overlapped units are refused.
  return !(at.entry.overlaps && at.sharding == "zero3") &&
         (at.entry.illegal == nullptr || !at.entry.illegal(size));
}

std::vector<Layout> layouts(const ScheduleEntry& entry) {
  std::vector<Layout> list;
  for (const Layout& at : {Layout{entry, 1, 1, 1, 1, 4, "none"},
                           Layout{entry, 2, 1, 4, 2, 2, "none"},
                           Layout{entry, 1, 2, 2, 2, 4, "zero1"},
                           Layout{entry, 2, 1, 1, 4, 2, "zero2"},
                           Layout{entry, 1, 1, 2, 2, 4, "zero3"},
                           Layout{entry, 2, 2, 2, 1, 2, "zero3"}}) {
    if (legal(at)) {
      list.push_back(at);
    }
  }
  return list;
}

class ScheduleConservation : public testing::TestWithParam<ScheduleEntry> {
 protected:
  template <typename Check>
  void each_layout(const Check& check) {
    const std::vector<Layout> list = layouts(GetParam());
    ASSERT_GE(list.size(), 4U);
    for (const Layout& at : list) {
      SCOPED_TRACE("pp " + std::to_string(at.pp) + " tp " + std::to_string(at.tp) + " cp " +
                   std::to_string(at.cp) + " " + at.sharding);
      const Scenario scenario = read_with(kSmallExperts, at.sets());
      const Expected<Lowered> lowered = lower(scenario);
      ASSERT_TRUE(lowered.has_value()) << lowered.error().list.front().message;
      check(at, scenario, *lowered);
    }
  }
};

TEST_P(ScheduleConservation, ExecutedFlopsAreTheFormula) {
  each_layout([](const Layout&, const Scenario& scenario, const Lowered& lowered) {
    const double formula = flops_per_token(scenario.model, kSequence, FlopsConvention::kCausal) *
                           static_cast<double>(lowered.facts.tokens);
    EXPECT_NEAR(static_cast<double>(lowered.facts.model_flops) / formula, 1.0, 1e-9);
    EXPECT_EQ(lowered.facts.recomputed_flops, 0);
  });
}

TEST_P(ScheduleConservation, ExpertsAndContextsMoveWhatTheLayersNeed) {
  each_layout([](const Layout& at, const Scenario&, const Lowered& lowered) {
    std::map<std::string, std::int64_t> sent = sent_by_stream(lowered.program);
    const std::int64_t times = kLayers * kMicroBatches * at.columns();
    // Dispatch and combine, forward and backward, of every token's copies.
    const std::int64_t copies = kSequence / at.tp / at.cp * kTopK * kHidden * 2;
    EXPECT_EQ(sent["ep"], 4 * copies / at.ep * (at.ep - 1) * times);
    // Keys and values go round forward and backward, their gradients backward.
    const std::int64_t tensor = kSequence / at.cp * kHeads * kHeadDim / at.tp * 2;
    EXPECT_EQ(sent["cp"], 3 * (at.cp - 1) * 2 * tensor * times);
  });
}

/// Parameters of a virtual stage on one rank: what dp x cp reduces, and what edp reduces.
std::pair<std::int64_t, std::int64_t> parameters(const Layout& at, std::int64_t stage) {
  const std::int64_t stages = at.pp * at.vpp();
  const std::int64_t attention = 4 * kHidden * kHeads * kHeadDim / at.tp + 2 * kHeadDim;
  const std::int64_t layer = attention + 2 * kHidden + kHidden * kExperts;
  const std::int64_t table = kVocabulary / at.tp * kHidden;
  const std::int64_t layers = kLayers / stages;
  return {layers * layer + (stage == 0 ? table : 0) + (stage + 1 == stages ? table + kHidden : 0),
          layers * kExperts / at.ep * 3 * kHidden * kExpertWidth};
}

// Two copies of the model stand on twice the ranks of a stage: they reduce over both of them, and
// each of them runs half of the micro-batches. A slice is a forward and a backward of its own.
TEST_P(ScheduleConservation, GradientsAndParametersGoOverAllThatHoldThem) {
  each_layout([](const Layout& at, const Scenario&, const Lowered& lowered) {
    const std::int64_t copies = at.copies();
    const std::int64_t passes = kMicroBatches / copies * at.slices();
    // fp32 gradients, 16-bit parameters. zero2 reduces after every backward; zero3 gathers for
    // every forward and backward as well.
    const std::int64_t each = at.sharding == "none"    ? 2 * 4
                              : at.sharding == "zero1" ? 4 + 2
                              : at.sharding == "zero2" ? passes * 4 + 2
                                                       : passes * (2 + 2 + 4);
    std::int64_t expected = 0;
    for (std::int64_t stage = 0; stage < at.pp * at.vpp(); ++stage) {
      const auto [shared, experts] = parameters(at, stage);
      const std::int64_t dp = copies * at.dp * at.cp;
      const std::int64_t edp = copies * at.edp();
      expected += copies * at.columns() *
                  (shared * each / dp * (dp - 1) + experts * each / edp * (edp - 1));
    }
    // The norm is 4 bytes over all ranks that hold different gradients, the loss 4 a pipeline.
    const std::int64_t gpus = at.columns() * at.pp;
    const std::int64_t norm = at.sharding == "none" ? at.tp * at.pp : gpus;
    expected += gpus * ((8 * (norm - 1) + norm - 1) / norm) + gpus * 4;
    EXPECT_EQ(sent_by_stream(lowered.program)["dp"], expected);
  });
}

// A layer gathers its input and scatters its output twice a direction, and the backward gathers
// both inputs once more for the weights; the embedding scatters, the head gathers.
TEST_P(ScheduleConservation, TensorParallelRanksMoveWhatOneF1BMoves) {
  each_layout([](const Layout& at, const Scenario&, const Lowered& lowered) {
    Layout plain = at;
    plain.entry = *find_schedule("1f1b");
    const Expected<Lowered> same = lower(read_with(kSmallExperts, plain.sets()));
    ASSERT_TRUE(same.has_value());
    std::map<std::string, std::int64_t> sent = sent_by_stream(lowered.program);
    std::map<std::string, std::int64_t> expected = sent_by_stream(same->program);
    EXPECT_EQ(sent["tp"], expected["tp"]);
    EXPECT_EQ(sent["tp"] > 0, at.tp > 1);
  });
}

/// Bytes of the tasks of a kind, over all ranks.
std::int64_t message_bytes(const Program& program, TaskKind kind) {
  std::int64_t sum = 0;
  for (const Instance& instance : program.instances) {
    const Template& body = program.templates[static_cast<std::size_t>(instance.template_index)];
    for (const Call& call : body.calls) {
      for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
        sum += task.kind == kind ? task.bytes : 0;
      }
    }
  }
  return sum;
}

/// Hops between ranks of one micro-batch in one direction.
std::int64_t hops(const Layout& at) {
  switch (at.entry.placement) {
    case Placement::kLinear:
    case Placement::kBidirectional:
      return at.pp - 1;
    case Placement::kLoop:
      return at.pp * at.vpp() - 1;
    case Placement::kV:
      break;
  }
  return 2 * (at.pp - 1);
}

TEST_P(ScheduleConservation, MessagesAreOneBoundaryPerHopAndDirection) {
  each_layout([](const Layout& at, const Scenario&, const Lowered& lowered) {
    const std::int64_t boundary = kSequence / at.tp / at.cp * kHidden * 2;  // 16 bits
    const std::int64_t expected = 2 * kMicroBatches * hops(at) * boundary * at.columns();
    EXPECT_EQ(message_bytes(lowered.program, TaskKind::kSend), expected);
    EXPECT_EQ(message_bytes(lowered.program, TaskKind::kReceive), expected);
    EXPECT_EQ(message_count(lowered.schedule) * boundary / at.slices() * at.columns(), expected);
  });
}

/// The most a rank's calls hold; a call takes before it gives back. What is held in the end is 0.
std::int64_t most_held(const Template& body) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const Call& call : body.calls) {
    most = std::max(most, held + call.allocated_bytes);
    held += call.allocated_bytes - call.freed_bytes;
    EXPECT_GE(held, 0);
  }
  EXPECT_EQ(held, 0);
  return most;
}

// The program's account of memory and the plan's are two, of the same peak (where there are no
// logits).
TEST_P(ScheduleConservation, MemoryReturnsToItsBase) {
  for (const std::string mode : {"none", "selective", "full"}) {
    each_layout([&mode](const Layout& at, const Scenario&, const Lowered&) {
      std::vector<std::string> sets = at.sets();
      sets.push_back("recompute.mode=" + mode);
      const Expected<Lowered> lowered = lower(read_with(kSmallExperts, sets));
      ASSERT_TRUE(lowered.has_value());
      for (std::size_t rank = 0; rank < lowered->program.instances.size(); ++rank) {
        const auto body = static_cast<std::size_t>(lowered->program.instances[rank].template_index);
        const std::int64_t most = most_held(lowered->program.templates[body]);
        const std::size_t pp_rank = rank / static_cast<std::size_t>(at.columns());
        const bool ends = pp_rank == 0 || pp_rank + 1 == static_cast<std::size_t>(at.pp);
        if (!ends) {
          EXPECT_EQ(most, lowered->facts.memory[pp_rank].activations) << "rank " << rank;
        }
      }
    });
  }
}

// All layers are run again once: a third of what they do forward and backward.
TEST_P(ScheduleConservation, FullRecomputationRepeatsTheForwardOfTheLayers) {
  each_layout([](const Layout& at, const Scenario&, const Lowered& none) {
    std::vector<std::string> sets = at.sets();
    sets.emplace_back("recompute.mode=full");
    const Expected<Lowered> lowered = lower(read_with(kSmallExperts, sets));
    ASSERT_TRUE(lowered.has_value());
    const double tokens = static_cast<double>(lowered->facts.tokens);
    const double head = 6.0 * (static_cast<double>(kVocabulary) * kHidden + kHidden) * tokens;
    const double layers = static_cast<double>(lowered->facts.model_flops) - head;
    EXPECT_EQ(lowered->facts.model_flops, none.facts.model_flops);
    EXPECT_NEAR(static_cast<double>(lowered->facts.recomputed_flops) / (layers / 3), 1.0, 1e-9);
  });
}

INSTANTIATE_TEST_SUITE_P(Table,
                         ScheduleConservation,
                         testing::ValuesIn(schedule_table().begin(), schedule_table().end()),
                         test::entry_name);

/// Names of a rank's calls where stage and micro-batch do not tell the action.
std::vector<std::string> names_of(const char* schedule, std::int64_t slices) {
  const test::PipelineSize size{4, 8, 1, slices};
  const Expected<Lowered> lowered =
      lower(read_with(test::pipeline_text(schedule, size, R"({"model": "constant"})"), {}));
  std::vector<std::string> names;
  for (const Call& call : lowered->program.templates.front().calls) {
    if (call.label >= 0) {
      names.push_back(lowered->program.labels[static_cast<std::size_t>(call.label)]);
    }
  }
  return names;
}

TEST(CallNames, AreUnitsCopiesAndSlices) {
  const std::vector<std::string> both = names_of("dualpipe", 1);
  ASSERT_EQ(both.size(), 16U);
  EXPECT_EQ(both[0], "0F0@0");
  EXPECT_EQ(both[7], "(0F3@0;3B5@1)OVERLAP_F_B");
  EXPECT_EQ(names_of("seq1f1b", 2).front(), "0F0.0");
  EXPECT_TRUE(names_of("zb-h1", 1).empty());
  // Seven forwards ahead, then the one pair of eight micro-batches.
  EXPECT_EQ(names_of("1f1b-overlap", 1), std::vector<std::string>{"(0F7;0B0)OVERLAP_F_B"});
}

}  // namespace
}  // namespace foretrain
