#include "tests/model/known_models.h"

#include "foretrain/model.h"
#include "sim/base/random.h"
#include "sim/model/operator_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

// Properties of the operators of random dense models; every draw is a function of the case number.
namespace foretrain {
namespace {

constexpr std::uint64_t kCases = 200;
constexpr BlockKind kKinds[] = {BlockKind::kEmbedding, BlockKind::kDense, BlockKind::kHead};

/// Draws of one case.
class Draw {
 public:
  explicit Draw(std::uint64_t number) : case_(number) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits(17, case_, next_++) %
                                     static_cast<std::uint64_t>(n));
  }
  bool coin() { return below(2) == 1; }

 private:
  std::uint64_t case_;
  std::uint64_t next_ = 0;
};

/// Every split dimension is divisible by 8.
ModelConfig random_model(Draw& draw) {
  ModelConfig model;
  model.model_type = "llama";
  model.kv_heads = 8 * (1 + draw.below(2));
  model.heads = model.kv_heads * (1 + draw.below(4));
  model.head_dim = 16 * (1 + draw.below(8));
  model.hidden = 64 * (1 + draw.below(64));
  model.layers = 1 + draw.below(5);
  model.ffn = 64 * (1 + draw.below(64));
  model.vocabulary = 8 * (1 + draw.below(4000));
  model.gated_mlp = draw.coin();
  model.tied_embeddings = draw.coin();
  model.qkv_bias = draw.coin();
  model.output_bias = draw.coin();
  model.mlp_bias = draw.coin();
  model.layer_norm = draw.coin();
  model.qk_norm = draw.coin();
  model.learned_positions = draw.coin();
  model.max_positions = model.learned_positions ? 4096 : 0;
  model.sliding_window = draw.coin() ? 32 * (1 + draw.below(40)) : 0;
  return model;
}

BlockContext random_context(Draw& draw) {
  BlockContext at;
  at.sequence_length = 64 * (1 + draw.below(16));
  at.micro_batch_size = 1 + draw.below(3);
  at.tp = std::int64_t{1} << draw.below(4);
  at.sequence_parallel = draw.coin();
  at.recompute = static_cast<RecomputeMode>(draw.below(4));
  at.fused_operators = draw.coin();
  at.flash_attention = draw.coin();
  at.fused_gradient_accumulation = draw.coin();
  at.textbook = draw.coin();
  if (draw.coin())
    at.recompute_modules.emplace_back("layernorm");
  if (draw.coin())
    at.recompute_modules.emplace_back("mlp");
  return at;
}

struct Case {
  explicit Case(std::uint64_t number)
      : draw(number), model(random_model(draw)), at(random_context(draw)) {}
  Draw draw;
  ModelConfig model;
  BlockContext at;
  BlockOperators block(BlockKind kind) const { return block_operators(model, kind, at); }
};

Int128 flops(const std::vector<Operator>& operators, bool recomputed) {
  Int128 sum = 0;
  for (const Operator& op : operators) {
    if ((op.pass == Pass::kRecompute) == recomputed)
      sum += op.flops.value;
  }
  return sum;
}

auto key(const Operator& op) {
  return std::tuple(op.name,
                    op.kind,
                    op.pass,
                    op.flops.value,
                    op.bytes.value,
                    op.m,
                    op.n,
                    op.k,
                    op.collective,
                    op.dimension,
                    op.payload.value);
}

template <typename... Lists>
auto multiset_of(const Lists&... lists) {
  std::map<decltype(key(Operator{})), int> counts;
  const auto count = [&](const std::vector<Operator>& list) {
    for (const Operator& op : list)
      ++counts[key(op)];
  };
  (count(lists), ...);
  return counts;
}

// Rule: model FLOPs executed by all ranks in forward, input and weight gradients equal
// 6 (N - input embedding) + 12 L a d (pairs) per token; recomputation is on top of it.
TEST(OperatorProperties, ExecutedFlopsAreTheFormula) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    Int128 executed = 0;
    for (const BlockKind kind : kKinds) {
      const BlockOperators block = c.block(kind);
      const std::int64_t times = kind == BlockKind::kDense ? c.model.layers : 1;
      executed += times * c.at.tp * (flops(block.forward, false) + flops(block.backward, false));
    }
    const std::int64_t s = c.at.sequence_length;
    const std::int64_t b = c.at.micro_batch_size;
    const std::int64_t w = c.model.sliding_window > 0 ? std::min(c.model.sliding_window, s) : s;
    const ParameterCount count = count_parameters(c.model);
    const Int128 matrices = Int128{6} * (count.active - count.input_embedding) * s * b;
    const Int128 attention =
        Int128{6} * c.model.layers * c.model.heads * c.model.head_dim * (2 * s * w - w * w) * b;
    EXPECT_TRUE(executed == matrices + attention) << "case " << number;
    const double per_token = flops_per_token(c.model, s, FlopsConvention::kCausal);
    EXPECT_NEAR(per_token * static_cast<double>(s * b) / static_cast<double>(executed), 1.0, 1e-12);
  }
}

// Rule: backward costs twice forward in every block that multiplies.
TEST(OperatorProperties, BackwardIsTwiceForward) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    for (const BlockKind kind : kKinds) {
      const BlockOperators block = c.block(kind);
      EXPECT_TRUE(flops(block.backward, false) == 2 * flops(block.forward, false)) << number;
    }
  }
}

// Rule: the two halves of a split backward are the backward, operator by operator; only the second
// holds weight gradients.
TEST(OperatorProperties, HalvesMakeTheBackward) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    for (const BlockKind kind : kKinds) {
      const BlockOperators block = c.block(kind);
      EXPECT_TRUE(multiset_of(block.backward) ==
                  multiset_of(block.input_gradient, block.weight_gradient));
      for (const Operator& op : block.weight_gradient)
        EXPECT_EQ(op.pass, Pass::kWeightGradient);
      for (const Operator& op : block.input_gradient)
        EXPECT_NE(op.pass, Pass::kWeightGradient);
    }
  }
}

// Rule: every list is in topological order: inputs are earlier, each named once, ascending.
TEST(OperatorProperties, InputsPointBackwards) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    for (const BlockKind kind : kKinds) {
      const BlockOperators block = c.block(kind);
      for (const auto* list :
           {&block.forward, &block.backward, &block.input_gradient, &block.weight_gradient}) {
        for (std::size_t i = 0; i < list->size(); ++i) {
          std::int32_t previous = -1;
          for (const std::int32_t input : (*list)[i].inputs) {
            EXPECT_GT(input, previous);
            previous = input;
          }
          EXPECT_LT(previous, static_cast<std::int32_t>(i));
        }
      }
    }
  }
}

// Rule: recomputation adds operators and keeps less; it changes nothing else. Full recomputation
// is the whole forward again.
TEST(OperatorProperties, RecomputationOnlyAdds) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    Case c(number);
    const BlockOperators with = c.block(BlockKind::kDense);
    const bool full = c.at.recompute == RecomputeMode::kFull;
    c.at.recompute = RecomputeMode::kNone;
    const BlockOperators without = c.block(BlockKind::kDense);
    EXPECT_TRUE(flops(without.backward, true) == 0);
    EXPECT_TRUE(flops(with.backward, false) == flops(without.backward, false));
    EXPECT_TRUE(multiset_of(with.weight_gradient) == multiset_of(without.weight_gradient));
    EXPECT_LE(stash_bytes(with).value, stash_bytes(without).value);
    if (full) {
      EXPECT_TRUE(flops(with.backward, true) == flops(with.forward, false));
      EXPECT_EQ(with.backward.size(), without.backward.size() + with.forward.size());
    }
  }
}

// Rule: tensors of the tensor-parallel regions shrink with tp, so that with sequence parallelism
// the stash of all ranks together does not depend on it.
TEST(OperatorProperties, StashIsSharedByTheRanks) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    Case c(number);
    c.at.sequence_parallel = true;
    const std::int64_t shared = stash_bytes(c.block(BlockKind::kDense)).value * c.at.tp;
    c.at.tp = 1;
    EXPECT_EQ(shared, stash_bytes(c.block(BlockKind::kDense)).value) << number;
  }
}

double memory_bound_bytes(const BlockOperators& block) {
  double bytes = 0;
  for (const auto* list : {&block.forward, &block.backward}) {
    for (const Operator& op : *list) {
      if (op.kind == OperatorKind::kNorm || op.kind == OperatorKind::kElementwise)
        bytes += static_cast<double>(op.bytes.value);
    }
  }
  return bytes;
}

// Rule: eager norms and elementwise operators move 1.7 to 2.1 times the bytes of fused ones, as
// measured on A100s, in layers of real shape with a flash kernel; never less in any.
TEST(OperatorProperties, EagerOperatorsMoveMoreBytes) {
  const auto ratio = [](const ModelConfig& model, BlockContext at) {
    at.flash_attention = true;
    at.fused_gradient_accumulation = true;
    at.recompute = RecomputeMode::kNone;
    at.fused_operators = true;
    const double fused = memory_bound_bytes(block_operators(model, BlockKind::kDense, at));
    at.fused_operators = false;
    return memory_bound_bytes(block_operators(model, BlockKind::kDense, at)) / fused;
  };
  BlockContext at;
  at.sequence_length = 4096;
  for (const ModelConfig& model : {known::llama2_7b(),
                                   known::llama3_8b(),
                                   known::llama3_70b(),
                                   known::llama3_405b(),
                                   known::gpt3_175b()}) {
    EXPECT_GE(ratio(model, at), 1.7) << model.hidden;
    EXPECT_LE(ratio(model, at), 2.1) << model.hidden;
  }
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    EXPECT_GT(ratio(c.model, c.at), 1.0) << number;
  }
}

// Rule: of the operators that are ready the one added first comes first, and a half keeps only the
// edges inside it.
TEST(OperatorGraph, OrderAndHalves) {
  OperatorGraph graph;
  Operator input;
  input.pass = Pass::kInputGradient;
  Operator weight;
  weight.pass = Pass::kWeightGradient;
  const auto a = graph.add(input, {});
  const auto b = graph.add(weight, {a, -1, a});
  const auto c = graph.add(input, {a});
  graph.add(weight, {b, c});
  const std::vector<Operator> all = graph.in_order();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].inputs, std::vector<std::int32_t>({0}));
  EXPECT_EQ(all[3].inputs, std::vector<std::int32_t>({1, 2}));
  const std::vector<Operator> half = graph.in_order(true);
  ASSERT_EQ(half.size(), 2U);
  EXPECT_TRUE(half[0].inputs.empty());
  EXPECT_EQ(half[1].inputs, std::vector<std::int32_t>({0}));
}

}  // namespace
}  // namespace foretrain
