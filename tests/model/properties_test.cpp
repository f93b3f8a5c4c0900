#include "tests/model/known_models.h"
#include "tests/model/random_cases.h"

#include "foretrain/model.h"
#include "sim/model/operator_graph.h"

#include <algorithm>

#include <gtest/gtest.h>

// Properties of the operators of random models in random layouts.
namespace foretrain {
namespace {

using random_cases::Case;
using random_cases::flops;
using random_cases::kCases;
using random_cases::multiset_of;

/// 6 FLOPs per token and parameter that is multiplied, written out from the config: prediction
/// modules included, each with the head.
Int128 multiplied(const ModelConfig& model) {
  const ParameterCount count = count_parameters(model);
  // Of a module's parameters the experts that are not chosen stay idle.
  const std::int64_t expert =
      (model.gated_mlp ? 3 : 2) * model.hidden * model.expert_ffn +
      (model.mlp_bias ? (model.gated_mlp ? 2 : 1) * model.expert_ffn + model.hidden : 0);
  const std::int64_t idle = (model.experts - model.experts_per_token) * expert;
  return Int128{count.active} - count.input_embedding + count.mtp +
         model.mtp_layers * (model.vocabulary * model.hidden - idle);
}

// Rule: model FLOPs executed by all ranks in forward, input and weight gradients equal
// 6 (N active - input embedding) + 6 L a (q_dim + v_dim) (pairs) per token; recomputation is on top
// of it.
TEST(OperatorProperties, ExecutedFlopsAreTheFormula) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    const ModelConfig& model = c.model;
    Int128 executed = 0;
    for (const BlockKind kind : c.kinds()) {
      const BlockOperators block = c.block(kind);
      const std::vector<BlockKind> blocks = c.blocks();
      const Int128 ranks = c.at.tp * c.at.cp * std::count(blocks.begin(), blocks.end(), kind);
      executed += ranks * (flops(block.forward, false) + flops(block.backward, false));
    }
    const std::int64_t s = c.at.sequence_length;
    const std::int64_t b = c.at.micro_batch_size;
    const std::int64_t w = model.sliding_window > 0 ? std::min(model.sliding_window, s) : s;
    const std::int64_t dims = model.kv_lora_rank > 0
                                  ? model.qk_nope_dim + model.qk_rope_dim + model.v_head_dim
                                  : 2 * model.head_dim;
    const Int128 attention = Int128{3} * (model.layers + model.mtp_layers) * model.heads * dims *
                             (2 * s * w - w * w) * b;
    EXPECT_TRUE(executed == 6 * multiplied(model) * s * b + attention) << "case " << number;
    const double per_token =
        flops_per_token(model, s, FlopsConvention::kCausal, 0.0, model.mtp_layers);
    EXPECT_NEAR(per_token * static_cast<double>(s * b) / static_cast<double>(executed), 1.0, 1e-12);
  }
}

// Rule: backward costs twice forward in every block that multiplies.
TEST(OperatorProperties, BackwardIsTwiceForward) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Case c(number);
    for (const BlockKind kind : c.kinds()) {
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
    for (const BlockKind kind : c.kinds()) {
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
    for (const BlockKind kind : c.kinds()) {
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
    for (const BlockKind kind : c.layer_kinds()) {
      const Case with_recompute = c;
      const BlockOperators with = with_recompute.block(kind);
      Case none = c;
      none.at.recompute = RecomputeMode::kNone;
      const BlockOperators without = none.block(kind);
      EXPECT_TRUE(flops(without.backward, true) == 0);
      EXPECT_TRUE(flops(with.backward, false) == flops(without.backward, false));
      EXPECT_TRUE(multiset_of(with.weight_gradient) == multiset_of(without.weight_gradient));
      EXPECT_LE(stash_bytes(with).value, stash_bytes(without).value);
      if (c.at.recompute == RecomputeMode::kFull) {
        EXPECT_TRUE(flops(with.backward, true) == flops(with.forward, false));
        // The looked-up embedding of a prediction module is kept.
        const std::size_t looked_up =
            kind == BlockKind::kPrediction ? c.block(BlockKind::kEmbedding).forward.size() : 0;
        EXPECT_EQ(with.backward.size(), without.backward.size() + with.forward.size() - looked_up);
      }
    }
  }
}

// Rule: tensors of the tensor-parallel regions shrink with tp, so that with sequence parallelism
// the stash of all ranks together does not depend on it (the one rotary key that all heads share
// is held by each, once the up projections are recomputed from it, and so is a key/value head that
// Ulysses copies).
TEST(OperatorProperties, StashIsSharedByTheRanks) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    Case c(number);
    c.at.sequence_parallel = true;
    c.at.cp_kind = ContextKind::kRing;
    std::erase(c.at.recompute_modules, "mla_up_proj");
    for (const BlockKind kind : c.layer_kinds()) {
      Case alone = c;
      alone.at.tp = alone.at.etp = 1;
      Case split = c;
      split.at.etp = 1;
      EXPECT_EQ(stash_bytes(split.block(kind)).value * c.at.tp,
                stash_bytes(alone.block(kind)).value)
          << number;
    }
  }
}

// Rule: degree one of a dimension is the same as its absence, whatever is said about how it would
// have been done.
TEST(OperatorProperties, DegreeOneIsAbsence) {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    Case c(number);
    c.at.cp = c.at.ep = c.at.etp = 1;
    Case plain = c;
    const BlockContext defaults;
    plain.at.cp_kind = defaults.cp_kind;
    plain.at.overlap_cp = defaults.overlap_cp;
    plain.at.dispatcher = defaults.dispatcher;
    for (const BlockKind kind : c.kinds()) {
      const BlockOperators said = c.block(kind);
      const BlockOperators unsaid = plain.block(kind);
      EXPECT_TRUE(multiset_of(said.forward) == multiset_of(unsaid.forward)) << number;
      EXPECT_TRUE(multiset_of(said.backward) == multiset_of(unsaid.backward)) << number;
      EXPECT_EQ(stash_bytes(said).value, stash_bytes(unsaid).value) << number;
      for (const Operator& op : said.forward)
        EXPECT_TRUE(op.kind != OperatorKind::kCollective || op.dimension == MeshDimension::kTp);
    }
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
