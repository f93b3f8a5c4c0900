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

const Operator& find(const std::vector<Operator>& operators, std::string_view name) {
  const auto found = std::find_if(
      operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
  EXPECT_NE(found, operators.end()) << name;
  return found == operators.end() ? operators.front() : *found;
}

// Rule: issue order of a GPT layer backward with plain tensor parallelism: gradients of each linear
// layer's input, the all-reduce of a column-parallel one, then its weight gradient.
TEST(Operators, BackwardOfAGptLayer) {
  const BlockOperators block =
      block_operators(known::gpt3_175b(), BlockKind::kDense, context(2048, 1, 8, false));
  const std::vector<std::string> expected = {"dropout gradient",
                                             "mlp down input gradient",
                                             "mlp down weight gradient",
                                             "gelu gradient",
                                             "mlp up input gradient",
                                             "tp all-reduce",
                                             "mlp up weight gradient",
                                             "norm 2 gradient",
                                             "dropout gradient",
                                             "attention output input gradient",
                                             "attention output weight gradient",
                                             "attention gradient",
                                             "qkv input gradient",
                                             "tp all-reduce",
                                             "qkv weight gradient",
                                             "norm 1 gradient"};
  EXPECT_EQ(names(block.backward), expected);
}

// Rule: nothing on the compute path overtakes a collective it needs: every operator that follows
// one on the path waits for it. With the textbook's assumptions the weight gradient waits as well.
TEST(Operators, TheComputePathWaitsForItsCollectives) {
  for (const bool split : {true, false}) {
    for (const bool textbook : {true, false}) {
      BlockContext at = context(4096, 1, 4, split);
      at.textbook = textbook;
      const BlockOperators block = block_operators(known::llama3_8b(), BlockKind::kDense, at);
      for (const auto* list : {&block.forward, &block.backward}) {
        for (std::size_t i = 0; i + 1 < list->size(); ++i) {
          if ((*list)[i].kind != OperatorKind::kCollective ||
              (*list)[i].pass == Pass::kWeightGradient)
            continue;
          const auto waits = [&](const Operator& op) {
            return std::count(op.inputs.begin(), op.inputs.end(), static_cast<std::int32_t>(i));
          };
          const bool weight = (*list)[i + 1].pass == Pass::kWeightGradient;
          EXPECT_EQ(waits((*list)[i + 1]), weight && !textbook ? 0 : 1) << (*list)[i + 1].name;
          if (weight) {
            EXPECT_EQ(waits((*list)[i + 2]), 1) << (*list)[i + 2].name;
          }
        }
      }
    }
  }
}

// Rule: GEMM shapes of Llama 3 70B on 8 ranks at 8,192 tokens: n = (64 + 2 * 8) * 128 / 8 for qkv,
// 2 * 28672 / 8 for gate and up; FLOPs 2 m n k.
TEST(Operators, GemmShapes) {
  const BlockOperators block =
      block_operators(known::llama3_70b(), BlockKind::kDense, context(8192, 1, 8, true));
  const auto expect_gemm = [](const Operator& op, std::int64_t m, std::int64_t n, std::int64_t k) {
    EXPECT_EQ(op.m, m) << op.name;
    EXPECT_EQ(op.n, n) << op.name;
    EXPECT_EQ(op.k, k) << op.name;
    EXPECT_EQ(op.flops.value, 2 * m * n * k) << op.name;
  };
  expect_gemm(find(block.forward, "qkv"), 8192, 1280, 8192);
  expect_gemm(find(block.forward, "attention output"), 8192, 8192, 1024);
  expect_gemm(find(block.forward, "mlp up"), 8192, 7168, 8192);
  expect_gemm(find(block.forward, "mlp down"), 8192, 8192, 3584);
  expect_gemm(find(block.backward, "mlp up input gradient"), 8192, 8192, 7168);
  expect_gemm(find(block.backward, "mlp up weight gradient"), 8192, 7168, 8192);
  // Reads both operands, writes the product: 16 bits each.
  EXPECT_EQ(find(block.forward, "qkv").bytes.value,
            2 * (8192LL * 8192 + 8192LL * 1280 + 8192LL * 1280));
}

// Rule: causal attention of h = 4096 over s = 8192 is 2 s^2 h FLOPs forward (half of 4 s^2 h) and
// twice that backward, in one kernel or in three; without a flash kernel the scores are moved.
TEST(Operators, Attention) {
  const ModelConfig model = known::llama3_8b();
  BlockContext at = context(8192, 1, 1, true);
  BlockOperators block = block_operators(model, BlockKind::kDense, at);
  const std::int64_t forward = 2LL * 8192 * 8192 * 4096;
  EXPECT_EQ(find(block.forward, "attention").flops.value, forward);
  EXPECT_EQ(find(block.backward, "attention gradient").flops.value, 2 * forward);
  EXPECT_EQ(find(block.forward, "attention").n, 32);
  EXPECT_EQ(find(block.forward, "attention").k, 128);
  at.flash_attention = false;
  block = block_operators(model, BlockKind::kDense, at);
  EXPECT_EQ(find(block.forward, "attention scores").flops.value, forward / 2);
  EXPECT_EQ(find(block.forward, "attention values").flops.value, forward / 2);
  EXPECT_EQ(find(block.forward, "softmax").bytes.value, 2 * 2 * 32LL * 8192 * 8192);
}

// Rule: selective recomputation repeats the core attention just before its gradient; full
// recomputation repeats the whole forward, collectives too, before any gradient.
TEST(Operators, Recomputation) {
  BlockContext at = context(4096, 1, 4, true);
  at.recompute = RecomputeMode::kSelective;
  const ModelConfig model = known::llama3_8b();
  BlockOperators block = block_operators(model, BlockKind::kDense, at);
  std::vector<std::string> list = names(block.backward);
  const auto attention = std::find(list.begin(), list.end(), "attention");
  ASSERT_NE(attention, list.end());
  EXPECT_EQ(*(attention + 1), "attention gradient");
  at.recompute = RecomputeMode::kFull;
  block = block_operators(model, BlockKind::kDense, at);
  list = names(block.backward);
  const std::vector<std::string> forward = names(block.forward);
  ASSERT_GT(list.size(), forward.size());
  EXPECT_TRUE(std::equal(forward.begin(), forward.end(), list.begin()));
  for (std::size_t i = 0; i < forward.size(); ++i)
    EXPECT_EQ(block.backward[i].pass, Pass::kRecompute);
  EXPECT_EQ(block.backward[forward.size()].inputs.back(),
            static_cast<std::int32_t>(forward.size()) - 1);
}

// Rule: the embedding adds up its shards' rows once and scatters gradients into its own rows.
TEST(Operators, Embedding) {
  BlockOperators block =
      block_operators(known::llama3_8b(), BlockKind::kEmbedding, context(4096, 1, 8, true));
  EXPECT_EQ(names(block.forward), (std::vector<std::string>{"embedding", "tp reduce-scatter"}));
  EXPECT_EQ(names(block.backward),
            (std::vector<std::string>{"tp all-gather", "embedding gradient"}));
  EXPECT_TRUE(block.input_gradient.empty());
  block = block_operators(known::gpt3_175b(), BlockKind::kEmbedding, context(2048, 1, 8, false));
  EXPECT_EQ(names(block.forward),
            (std::vector<std::string>{
                "embedding", "tp all-reduce", "position embedding", "embedding dropout"}));
}

// Rule: the head's matrix is V / tp wide, and the loss over a split vocabulary combines three
// 32-bit numbers per token.
TEST(Operators, Head) {
  const BlockOperators block =
      block_operators(known::llama3_8b(), BlockKind::kHead, context(4096, 2, 8, true));
  EXPECT_EQ(find(block.forward, "logits").n, 16032);
  std::int64_t small = 0;
  for (const Operator& op : block.forward)
    small += op.kind == OperatorKind::kCollective && op.payload.value == 4 * 8192 ? 1 : 0;
  EXPECT_EQ(small, 3);
  EXPECT_EQ(find(block.backward, "logits weight gradient").k, 8192);
}

// Rule: a key/value head is never split: 8 of them on 16 ranks are replicated, so that a rank's
// qkv is (4 + 2) * 128 columns wide.
TEST(Operators, KeyValueHeadsAreReplicated) {
  const BlockOperators block =
      block_operators(known::llama3_70b(), BlockKind::kDense, context(4096, 1, 16, true));
  EXPECT_EQ(find(block.forward, "qkv").n, (4 + 2) * 128);
}

// Rule: without fused accumulation each weight gradient is followed by an add of its own that reads
// it and reads and writes the 32-bit sum.
TEST(Operators, GradientAccumulation) {
  BlockContext at = context(4096, 1, 8, true);
  at.fused_gradient_accumulation = false;
  const BlockOperators block = block_operators(known::llama3_8b(), BlockKind::kDense, at);
  std::int64_t bytes = 0;
  for (const Operator& op : block.weight_gradient) {
    if (op.name == "gradient accumulation")
      bytes += op.bytes.value;
  }
  const std::int64_t norms = 2 * 4096;
  EXPECT_EQ(bytes, 10 * (block_parameters(known::llama3_8b(), BlockKind::kDense, 8) - norms));
}

// Rule: the picture has a node for each operator and an edge for each input.
TEST(Operators, Dot) {
  const BlockOperators block =
      block_operators(known::llama3_8b(), BlockKind::kDense, context(4096, 1, 8, true));
  const std::string dot = operators_dot(block.backward);
  std::size_t edges = 0;
  for (std::size_t at = dot.find("->"); at != std::string::npos; at = dot.find("->", at + 1))
    ++edges;
  std::size_t inputs = 0;
  for (const Operator& op : block.backward)
    inputs += op.inputs.size();
  EXPECT_EQ(edges, inputs);
  EXPECT_NE(dot.find("mlp up weight gradient"), std::string::npos);
  const BlockOperators mixture =
      block_operators(known::mixtral_8x7b(), BlockKind::kMoe, context(4096, 1, 1, true));
  EXPECT_NE(operators_dot(mixture.forward).find("expert up\\n8 of\\n1024 x 28672 x 4096"),
            std::string::npos);
}

}  // namespace
}  // namespace foretrain
