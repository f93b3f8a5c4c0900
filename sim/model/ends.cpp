#include "sim/model/ends.h"

namespace foretrain {

namespace {

/// The loss works on 32-bit copies of the logits.
constexpr std::int64_t kLossElementBytes = 4;

Linear logits(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  Linear layer;
  layer.names = {"logits", "logits input gradient", "logits weight gradient"};
  layer.n = shape.vocabulary;
  layer.k = shape.hidden;
  layer.rows = shape.tokens;
  layer.never_narrow = true;
  return layer;
}

Operator loss_operator(const BlockShape& shape,
                       std::string_view name,
                       Pass pass,
                       std::int64_t bytes_per_logit) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kLoss;
  op.pass = pass;
  op.bytes = Bytes{shape.tokens * shape.vocabulary * bytes_per_logit};
  return op;
}

/// One 32-bit number per token, combined over the vocabulary's shards.
void reduce_tokens(BlockBuilder& builder, std::string_view name) {
  if (builder.shape().tp == 1)
    return;
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kCollective;
  op.pass = Pass::kForward;
  op.collective = CollectiveKind::kAllReduce;
  op.payload = Bytes{builder.shape().tokens * kLossElementBytes};
  builder.then(op);
}

}  // namespace

void embedding_forward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  Operator lookup;
  lookup.name = "embedding";
  lookup.kind = OperatorKind::kEmbedding;
  // Rows of the own shard are read, the whole output is written.
  lookup.bytes = Bytes{(shape.full() / shape.tp + shape.full()) * shape.element};
  builder.then(lookup);
  builder.reduce();
  if (builder.model().learned_positions)
    builder.elementwise("position embedding", {3 * shape.split(), 0});
  if (shape.dropout)
    builder.elementwise("embedding dropout", {2 * shape.split(), shape.split()});
}

void embedding_backward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  OperatorGraph& graph = builder.graph();
  OperatorGraph::Vertex last = builder.path();
  if (shape.dropout) {
    builder.gradient("embedding dropout gradient",
                     OperatorKind::kElementwise,
                     {2 * shape.split(), shape.split()});
    last = builder.path();
  }
  Operator positions;
  positions.name = "position embedding gradient";
  positions.kind = OperatorKind::kEmbedding;
  positions.pass = Pass::kWeightGradient;
  positions.bytes = Bytes{shape.split() * shape.element};
  if (builder.model().learned_positions)
    last = graph.add(positions, {last});
  Operator gather;
  gather.name = "tp all-gather";
  gather.kind = OperatorKind::kCollective;
  gather.pass = Pass::kWeightGradient;
  gather.collective = CollectiveKind::kAllGather;
  gather.payload = Bytes{shape.full() * shape.element};
  if (shape.sequence_parallel)
    last = graph.add(gather, {last});
  // Scatter-add: every gradient row is read; rows of the own shard are read and written back.
  Operator scatter;
  scatter.name = "embedding gradient";
  scatter.kind = OperatorKind::kEmbedding;
  scatter.pass = Pass::kWeightGradient;
  scatter.bytes = Bytes{shape.full() * shape.element +
                        2 * (shape.full() / shape.tp) * builder.context().grad_element_bytes};
  graph.add(scatter, {last});
}

std::vector<Stash> embedding_stash(const BlockBuilder& builder) {
  std::vector<Stash> stash;
  if (builder.shape().dropout)
    stash.push_back({"embedding dropout mask", Bytes{builder.shape().split()}});
  return stash;
}

void head_forward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  builder.norm("final norm", false);
  builder.gather(shape.hidden);
  builder.linear(logits(builder));
  // Fused: the maximum reads the logits, one pass exponentiates and sums into a 32-bit copy.
  // Eager: cast, maximum, subtract, exponentiate, sum, divide, each a pass over 32-bit values.
  const std::int64_t element = shape.element;
  builder.then(
      loss_operator(shape, "loss maximum", Pass::kForward, shape.fused ? element : element + 8));
  reduce_tokens(builder, "loss maximum all-reduce");
  builder.then(loss_operator(shape, "loss", Pass::kForward, shape.fused ? element + 4 : 28));
  reduce_tokens(builder, "target logit all-reduce");
  reduce_tokens(builder, "loss sum all-reduce");
}

void head_backward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const std::int64_t per_logit = shape.fused ? 4 + shape.element : 20 + shape.element;
  builder.then(loss_operator(shape, "loss gradient", Pass::kInputGradient, per_logit));
  builder.linear_gradients(logits(builder));
  builder.norm_gradient("final norm gradient", false);
}

std::vector<Stash> head_stash(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const Bytes hidden_state{shape.split() * shape.element};
  return {{"final norm input", hidden_state}, {"logits input", hidden_state}};
}

Bytes head_logits(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  // Logits and a 32-bit copy that softmax and gradient overwrite in place; eager code keeps the
  // 32-bit gradient beside the softmax.
  const std::int64_t per_logit = shape.element + (shape.fused ? 1 : 2) * kLossElementBytes;
  return Bytes{shape.tokens * shape.vocabulary * per_logit};
}

/// Cast back to the logits' type; the 32-bit copies are free then.
Bytes head_logits_gradient(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  return Bytes{shape.tokens * shape.vocabulary * shape.element};
}

}  // namespace foretrain
