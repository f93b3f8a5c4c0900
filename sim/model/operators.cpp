#include "sim/model/ends.h"
#include "sim/model/layer.h"
#include "sim/model/prediction.h"

namespace foretrain {

namespace {

/// How a kind of block is built. `backward` may assume that forward ran on another builder.
struct BlockRecipe {
  void (*forward)(BlockBuilder&) = nullptr;
  void (*backward)(BlockBuilder&) = nullptr;
  std::vector<Stash> (*stash)(const BlockBuilder&) = nullptr;
};

BlockRecipe recipe(BlockKind kind) {
  switch (kind) {
    case BlockKind::kEmbedding:
      return {embedding_forward, embedding_backward, embedding_stash};
    case BlockKind::kDense:
      return {dense_forward, dense_backward, dense_stash};
    case BlockKind::kHead:
      return {head_forward, head_backward, head_stash};
    case BlockKind::kMoe:
      return {moe_layer_forward, moe_layer_backward, moe_layer_stash};
    case BlockKind::kPrediction:
      break;
  }
  return {prediction_forward, prediction_backward, prediction_stash};
}

}  // namespace

BlockOperators block_operators(const ModelConfig& model,
                               BlockKind kind,
                               const BlockContext& context) {
  const BlockRecipe build = recipe(kind);
  BlockBuilder forward(model, context);
  build.forward(forward);
  BlockBuilder backward(model, context);
  build.backward(backward);

  BlockOperators operators;
  operators.forward = forward.graph().in_order();
  operators.backward = backward.graph().in_order();
  operators.input_gradient = backward.graph().in_order(false);
  operators.weight_gradient = backward.graph().in_order(true);
  operators.stash = build.stash(forward);
  if (kind == BlockKind::kHead) {
    operators.logits = head_logits(forward);
    operators.logits_gradient = head_logits_gradient(forward);
  }
  return operators;
}

Bytes stash_bytes(const BlockOperators& operators) {
  Bytes total;
  for (const Stash& tensor : operators.stash)
    total += tensor.bytes;
  return total;
}

Bytes boundary_bytes(const ModelConfig& model, const BlockContext& context) {
  const BlockShape shape(model, context);
  return Bytes{shape.split() * shape.element};
}

}  // namespace foretrain
