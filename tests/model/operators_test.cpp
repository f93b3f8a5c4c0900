#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

BlockContext context(std::int64_t sequence, std::int64_t batch, std::int64_t tp, bool split) {
  BlockContext at;
  at.sequence_length = sequence;
  at.micro_batch_size = batch;
  at.tp = tp;
  at.sequence_parallel = split;
  return at;
}

std::int64_t sum_flops(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& op : operators)
    sum += op.flops.value;
  return sum;
}

std::int64_t count_kind(const std::vector<Operator>& operators, CollectiveKind kind) {
  return std::count_if(operators.begin(), operators.end(), [&](const Operator& op) {
    return op.kind == OperatorKind::kCollective && op.collective == kind;
  });
}

std::vector<std::string> names(const std::vector<Operator>& operators) {
  std::vector<std::string> list;
  for (const Operator& op : operators)
    list.emplace_back(op.name);
  return list;
}

Int128 executed(const ModelConfig& model, const BlockContext& at) {
  Int128 total = 0;
  for (const BlockKind kind : model_blocks(model)) {
    const BlockOperators block = block_operators(model, kind, at);
    total += Int128{sum_flops(block.forward)} + sum_flops(block.backward);
  }
  return total * at.tp;
}

// Rule: what the ranks of a tensor group execute in forward and backward is the model FLOPs of
// MODEL 2.2, exactly, when tp divides heads, widths, vocabulary and tokens.
TEST(Operators, ExecutedFlopsAreTheFormula) {
  for (const ModelConfig& model : {known::llama3_8b(),
                                   known::llama3_70b(),
                                   known::llama32_1b(),
                                   known::qwen25_7b(),
                                   known::gpt3_175b()}) {
    for (const std::int64_t tp : {1, 2, 4}) {
      for (const bool flash : {true, false}) {
        BlockContext at = context(2048, 2, tp, tp > 2);
        at.flash_attention = flash;
        const ParameterCount count = count_parameters(model);
        const Int128 matrices = Int128{6} * (count.active - count.input_embedding) * 4096;
        const Int128 attention =
            Int128{6} * model.layers * model.heads * model.head_dim * 2048 * 4096;
        EXPECT_TRUE(executed(model, at) == matrices + attention) << model.model_type << tp;
      }
    }
  }
}

// Rule: issue order of a Llama layer with sequence parallelism, forward.
TEST(Operators, ForwardOfALlamaLayer) {
  const BlockOperators block =
      block_operators(known::llama3_8b(), BlockKind::kDense, context(8192, 1, 8, true));
  const std::vector<std::string> expected = {"norm 1",
                                             "tp all-gather",
                                             "qkv",
                                             "rotary",
                                             "attention",
                                             "attention output",
                                             "tp reduce-scatter",
                                             "norm 2",
                                             "tp all-gather",
                                             "mlp up",
                                             "swiglu",
                                             "mlp down",
                                             "tp reduce-scatter",
                                             "residual add"};
  EXPECT_EQ(names(block.forward), expected);
}

// Rule: collectives of a layer (Korthikanti et al. 2022, figures 4 to 6): with sequence parallelism
// 2 all-gathers and 2 reduce-scatters each way, plus 2 gathers of saved inputs; with plain tensor
// parallelism 2 all-reduces each way; none alone. Payload: the whole s b h tensor.
TEST(Operators, CollectivesOfALayer) {
  const ModelConfig model = known::llama3_8b();
  BlockContext at = context(4096, 2, 4, true);
  BlockOperators block = block_operators(model, BlockKind::kDense, at);
  EXPECT_EQ(count_kind(block.forward, CollectiveKind::kAllGather), 2);
  EXPECT_EQ(count_kind(block.forward, CollectiveKind::kReduceScatter), 2);
  EXPECT_EQ(count_kind(block.backward, CollectiveKind::kAllGather), 4);
  EXPECT_EQ(count_kind(block.backward, CollectiveKind::kReduceScatter), 2);
  for (const Operator& op : block.backward) {
    if (op.kind == OperatorKind::kCollective) {
      EXPECT_EQ(op.payload.value, 4096LL * 2 * 4096 * 2);
    }
  }
  at.textbook = true;
  block = block_operators(model, BlockKind::kDense, at);
  EXPECT_EQ(count_kind(block.backward, CollectiveKind::kAllGather), 2);
  at = context(4096, 2, 4, false);
  block = block_operators(model, BlockKind::kDense, at);
  EXPECT_EQ(count_kind(block.forward, CollectiveKind::kAllReduce), 2);
  EXPECT_EQ(count_kind(block.backward, CollectiveKind::kAllReduce), 2);
  EXPECT_EQ(count_kind(block.backward, CollectiveKind::kAllGather), 0);
  at = context(4096, 2, 1, true);
  block = block_operators(model, BlockKind::kDense, at);
  for (const auto* list : {&block.forward, &block.backward}) {
    for (const Operator& op : *list)
      EXPECT_NE(op.kind, OperatorKind::kCollective);
  }
}

// Rule: the gather of a saved input runs beside the input gradient: neither waits for the other,
// the weight gradient waits for both.
TEST(Operators, SavedInputIsGatheredBesideTheInputGradient) {
  const BlockOperators block =
      block_operators(known::llama3_8b(), BlockKind::kDense, context(4096, 1, 4, true));
  const std::vector<std::string> list = names(block.backward);
  const auto place = [&](const std::string& name) {
    return static_cast<std::int32_t>(std::find(list.begin(), list.end(), name) - list.begin());
  };
  const std::int32_t input_gradient = place("mlp up input gradient");
  const std::int32_t gather = input_gradient - 1;
  const Operator& gather_op = block.backward[static_cast<std::size_t>(gather)];
  EXPECT_EQ(gather_op.collective, CollectiveKind::kAllGather);
  EXPECT_EQ(gather_op.pass, Pass::kWeightGradient);
  const auto inputs_of = [&](const std::string& name) {
    return block.backward[static_cast<std::size_t>(place(name))].inputs;
  };
  const std::vector<std::int32_t> input = inputs_of("mlp up input gradient");
  EXPECT_EQ(std::count(input.begin(), input.end(), gather), 0);
  const std::vector<std::int32_t> weight = inputs_of("mlp up weight gradient");
  EXPECT_EQ(std::count(weight.begin(), weight.end(), gather), 1);
  EXPECT_EQ(std::count(weight.begin(), weight.end(), input_gradient), 1);
}

}  // namespace
}  // namespace foretrain
