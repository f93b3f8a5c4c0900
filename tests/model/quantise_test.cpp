#include "sim/model/quantise.h"

#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: narrow precision changes the linear layers, to the byte, and nothing else. Llama 3 8B:
/// hidden 4096, MLP width 14336, queries 4096, keys and values 1024 each; 8192 tokens.
namespace foretrain {
namespace {

constexpr std::int64_t kTokens = 8192, kHidden = 4096, kWidth = 14336;
constexpr std::int64_t kWeights =
    kHidden * 6144 + kHidden * kHidden + kHidden * 2 * kWidth + kWidth * kHidden;

struct Recipe {
  DataType compute;
  std::string name;
  bool hopper;
};
const Recipe kBf16{DataType::kBf16, "", true};
const Recipe kDelayed{DataType::kFp8, "delayed", true};
const Recipe kTensorwise{DataType::kFp8, "tensorwise", true};
const Recipe kTensorwiseBlackwell{DataType::kFp8, "tensorwise", false};
const Recipe kBlockwise{DataType::kFp8, "blockwise", true};
const Recipe kMx{DataType::kFp8, "mxfp8", false};
const Recipe kNvfp4{DataType::kNvfp4, "nvfp4", false};

BlockContext context(const Recipe& recipe, std::int64_t tp = 1) {
  BlockContext at;
  at.sequence_length = kTokens;
  at.tp = tp;
  at.precision.compute = recipe.compute;
  at.precision.recipe = recipe.name;
  at.transposed_operands = recipe.hopper;
  return at;
}

BlockOperators layer(const BlockContext& at) {
  return block_operators(known::llama3_8b(), BlockKind::kDense, at);
}

/// Bytes of all operators of a name, in 128ths of a byte per token.
std::int64_t moved(const std::vector<Operator>& operators, std::string_view name) {
  std::int64_t sum = 0;
  for (const Operator& op : operators)
    sum += op.name == name ? op.bytes.value : 0;
  EXPECT_EQ(sum * 128 % kTokens, 0);
  return sum * 128 / kTokens;
}

std::vector<std::int64_t> payloads(const std::vector<Operator>& operators, CollectiveKind kind) {
  std::vector<std::int64_t> list;
  for (const Operator& op : operators) {
    if (op.kind == OperatorKind::kCollective && op.collective == kind)
      list.push_back(op.payload.value);
  }
  return list;
}

// Per 128 elements: 128 bytes in FP8, 4 more for scales of 128 (blockwise, 32 bits) or of 32 (MX, 8
// bits each); 64 in NVFP4 and 8 for scales of 16.
TEST(Quantise, BytesOfTheFormats) {
  struct Case {
    const Recipe& recipe;
    std::int64_t bytes, copies;
  };
  for (const Case& expected : {Case{kDelayed, 128, 256},
                               Case{kTensorwise, 128, 256},
                               Case{kTensorwiseBlackwell, 128, 128},
                               Case{kBlockwise, 132, 264},
                               Case{kMx, 132, 264},
                               Case{kNvfp4, 72, 144}}) {
    const Quantisation quantisation(context(expected.recipe));
    EXPECT_EQ(quantisation.bytes(1280), 10 * expected.bytes) << expected.recipe.name;
    EXPECT_EQ(quantisation.copied_bytes(1280), 10 * expected.copies) << expected.recipe.name;
  }
}

// A layer casts four inputs (hidden, queries, hidden, width = 26624 a token) and four output
// gradients (hidden, 2 width, hidden, 6144 = 43008). A cast reads 2 bytes and writes the copies;
// tensorwise and NVFP4 read 2 more for the largest value. A norm writes delayed copies itself, two
// bytes for two, and finds its tensorwise output's largest value: 18432 elements are then left.
TEST(Quantise, CastsOfALayer) {
  struct Case {
    const Recipe& recipe;
    std::int64_t each, inputs, scanned, scanned_gradients;
  };
  for (const Case& expected : {Case{kDelayed, 512, 18432, 0, 0},
                               Case{kTensorwise, 512, 26624, 18432, 43008},
                               Case{kTensorwiseBlackwell, 384, 26624, 18432, 43008},
                               Case{kBlockwise, 256 + 264, 26624, 0, 0},
                               Case{kMx, 256 + 264, 26624, 0, 0},
                               Case{kNvfp4, 256 + 144, 26624, 26624, 43008}}) {
    SCOPED_TRACE(expected.recipe.name);
    const BlockOperators narrow = layer(context(expected.recipe));
    EXPECT_EQ(moved(narrow.forward, "quantise"), expected.each * expected.inputs);
    EXPECT_EQ(moved(narrow.forward, "largest value"), 256 * expected.scanned);
    EXPECT_EQ(moved(narrow.backward, "quantise"), expected.each * 43008);
    EXPECT_EQ(moved(narrow.backward, "largest value"), 256 * expected.scanned_gradients);
    EXPECT_EQ(moved(narrow.backward, "transpose"), 0);
    const BlockOperators wide = layer(context(kBf16));
    EXPECT_EQ(moved(narrow.forward, "norm 1"), moved(wide.forward, "norm 1"));
  }
}

// On Blackwell the norm writes one byte where it wrote two; without fused norms every cast is a
// kernel and every largest value is looked for.
TEST(Quantise, CastsInsideNorms) {
  const Recipe blackwell{DataType::kFp8, "delayed", false};
  EXPECT_EQ(moved(layer(context(blackwell)).forward, "norm 1"), 128 * 3 * kHidden);
  BlockContext eager = context(kDelayed);
  eager.fused_operators = false;
  EXPECT_EQ(moved(layer(eager).forward, "quantise"), 512 * 26624);
  eager = context(kTensorwise);
  eager.fused_operators = false;
  EXPECT_EQ(moved(layer(eager).forward, "largest value"), 256 * 26624);
}

// Weights that zero3 gathers in 16 bits are cast at both uses, for one GEMM each.
TEST(Quantise, WeightsThatArriveWide) {
  BlockContext at = context(kDelayed);
  at.weights_arrive_wide = true;
  const BlockOperators block = layer(at);
  EXPECT_EQ(moved(block.forward, "quantise weights") / 128 * kTokens, 3 * kWeights);
  EXPECT_EQ(moved(block.backward, "quantise weights") / 128 * kTokens, 3 * kWeights);
}

TEST(Quantise, GemmsReadNarrowAndWriteWide) {
  const BlockOperators block = layer(context(kTensorwise));
  const auto named = [](const std::vector<Operator>& list, std::string_view name) {
    return *std::find_if(
        list.begin(), list.end(), [&](const Operator& op) { return op.name == name; });
  };
  const std::int64_t input = kTokens * kHidden, output = kTokens * 6144, weights = kHidden * 6144;
  EXPECT_EQ(named(block.forward, "qkv").bytes.value, input + weights + 2 * output);
  EXPECT_EQ(named(block.backward, "qkv input gradient").bytes.value, output + weights + 2 * input);
  // The 32-bit main gradient is read and written.
  EXPECT_EQ(named(block.backward, "qkv weight gradient").bytes.value, input + output + 8 * weights);
  for (const Operator& op : block.backward) {
    if (op.kind == OperatorKind::kGemm) {
      EXPECT_EQ(op.precision, DataType::kFp8) << op.name;
    }
    if (op.kind == OperatorKind::kAttention) {
      EXPECT_EQ(op.precision, DataType::kBf16) << op.name;
    }
  }
}

// Rule: what a column-parallel layer gathers has the narrow format's bytes, what is reduced stays
// in 16 bits. Output gradients of row-parallel layers are gathered too: per-tensor ones once, and
// transposed after; scales of blocks differ along rows and columns, so that both copies travel.
TEST(Quantise, CollectivesOfALayer) {
  const std::int64_t hidden = kTokens * kHidden;
  using List = std::vector<std::int64_t>;
  const BlockOperators wide = layer(context(kBf16, 8));
  const BlockOperators tensorwise = layer(context(kTensorwise, 8));
  EXPECT_EQ(payloads(wide.forward, CollectiveKind::kAllGather), (List{2 * hidden, 2 * hidden}));
  EXPECT_EQ(payloads(tensorwise.forward, CollectiveKind::kAllGather), (List{hidden, hidden}));
  EXPECT_EQ(payloads(tensorwise.backward, CollectiveKind::kAllGather),
            (List{hidden, hidden, hidden, hidden}));
  const std::int64_t mx = hidden / 32 * 33;
  const BlockOperators blocks = layer(context(kMx, 8));
  EXPECT_EQ(payloads(blocks.forward, CollectiveKind::kAllGather), (List{mx, mx}));
  EXPECT_EQ(payloads(blocks.backward, CollectiveKind::kAllGather), (List{2 * mx, mx, 2 * mx, mx}));
  // Two output gradients and two saved inputs are read and written in FP8.
  EXPECT_EQ(moved(tensorwise.backward, "transpose"), 128 * 4 * 2 * kHidden);
  EXPECT_EQ(moved(layer(context(kTensorwiseBlackwell, 8)).backward, "transpose"), 0);
  EXPECT_EQ(moved(blocks.backward, "transpose"), 0);
  for (const BlockOperators* block : {&tensorwise, &blocks}) {
    EXPECT_EQ(payloads(block->forward, CollectiveKind::kReduceScatter),
              payloads(wide.forward, CollectiveKind::kReduceScatter));
    EXPECT_EQ(payloads(block->backward, CollectiveKind::kReduceScatter),
              payloads(wide.backward, CollectiveKind::kReduceScatter));
  }
}

// Kept per token: three inputs go from 2 bytes to 1 (hidden, hidden, width), the projection's input
// is kept beside the attention's output (hidden); with attention recomputed it stands for it.
TEST(Quantise, KeptUntilTheBackward) {
  const auto kept = [](const Recipe& recipe, RecomputeMode mode) {
    BlockContext at = context(recipe);
    at.recompute = mode;
    return stash_bytes(layer(at)).value / kTokens;
  };
  const RecomputeMode none = RecomputeMode::kNone, selective = RecomputeMode::kSelective;
  EXPECT_EQ(kept(kTensorwise, none) - kept(kBf16, none), kHidden - (2 * kHidden + kWidth));
  EXPECT_EQ(kept(kDelayed, none), kept(kTensorwise, none));
  EXPECT_EQ(kept(kTensorwise, selective) - kept(kBf16, selective), -(3 * kHidden + kWidth));
  EXPECT_EQ(kept(kMx, none) - kept(kBf16, none), 26624 / 32 * 33 - 2 * (2 * kHidden + kWidth));
  EXPECT_EQ(kept(kNvfp4, none) - kept(kBf16, none), 26624 / 16 * 9 - 2 * (2 * kHidden + kWidth));
  EXPECT_EQ(kept(kTensorwise, RecomputeMode::kFull), kept(kBf16, RecomputeMode::kFull));
}

// Weights kept and moved, bytes a parameter: the model's own in 16 bits beside the copies (two on
// Hopper and for scales of blocks), or the narrow ones alone.
TEST(Quantise, Weights) {
  struct Case {
    const Recipe& recipe;
    bool native;
    std::int64_t kept, cast;  ///< 128ths of a byte
  };
  for (const Case& expected : {Case{kBf16, false, 256, 0},
                               Case{kDelayed, false, 512, 512},
                               Case{kTensorwise, false, 512, 768},
                               Case{kTensorwiseBlackwell, false, 384, 640},
                               Case{kMx, false, 520, 520},
                               Case{kNvfp4, false, 400, 656},
                               Case{kTensorwise, true, 256, 256},
                               Case{kTensorwiseBlackwell, true, 128, 0}}) {
    BlockContext at = context(expected.recipe);
    at.precision.params = expected.native ? DataType::kFp8 : DataType::kBf16;
    const Quantisation quantisation(at);
    EXPECT_EQ(quantisation.weight_bytes(12800), 100 * expected.kept) << expected.recipe.name;
    EXPECT_EQ(quantisation.weight_cast_bytes(12800), 100 * expected.cast) << expected.recipe.name;
  }
  for (const std::int64_t tp : {1, 8})
    EXPECT_EQ(narrow_weights(layer(context(kMx, tp))), kWeights / tp);
  EXPECT_EQ(narrow_weights(layer(context(kBf16))), 0);
}

// Qwen3 30B-A3B: 128 experts of 3 x 2048 x 768, queries of 4096 and two key/value heads' worth of
// 512: everything multiplied is narrow but the router.
TEST(Quantise, RoutersAndHeadsStayWide) {
  const ModelConfig model = known::qwen3_30b_a3b();
  const BlockOperators experts = block_operators(model, BlockKind::kMoe, context(kMx));
  EXPECT_EQ(narrow_weights(experts), 128 * 3 * 2048 * 768 + 2048 * (4096 + 2 * 512) + 4096 * 2048);
  const BlockOperators head =
      block_operators(known::llama3_8b(), BlockKind::kHead, context(kMx, 8));
  const BlockOperators wide =
      block_operators(known::llama3_8b(), BlockKind::kHead, context(kBf16, 8));
  ASSERT_EQ(head.backward.size(), wide.backward.size());
  for (std::size_t i = 0; i < wide.backward.size(); ++i) {
    EXPECT_EQ(head.backward[i].bytes.value, wide.backward[i].bytes.value);
    EXPECT_EQ(head.backward[i].payload.value, wide.backward[i].payload.value);
    EXPECT_EQ(head.backward[i].precision, DataType::kBf16);
  }
}

// DeepEP dispatches 8-bit tokens with blockwise scales, both ways, and combines in 16 bits.
TEST(Quantise, DispatchOfDeepEp) {
  const ModelConfig model = known::qwen3_30b_a3b();
  const auto exchanged = [&](const Recipe& recipe, const char* dispatcher) {
    BlockContext at = context(recipe);
    at.ep = 8;
    at.dispatcher = dispatcher;
    return payloads(block_operators(model, BlockKind::kMoe, at).forward, CollectiveKind::kAllToAll);
  };
  const std::vector<std::int64_t> wide = exchanged(kBf16, "deepep");
  const std::vector<std::int64_t> narrow = exchanged(kBlockwise, "deepep");
  ASSERT_EQ(wide.size(), 2U);
  EXPECT_EQ(narrow[0], wide[0] / 64 * 33);
  EXPECT_EQ(narrow[1], wide[1]);
  EXPECT_EQ(exchanged(kBlockwise, "alltoall"), exchanged(kBf16, "alltoall"));
}

}  // namespace
}  // namespace foretrain
