#include "sim/model/prediction.h"

#include "sim/model/ends.h"
#include "sim/model/layer.h"
#include "sim/model/parameters.h"

namespace foretrain {

namespace {

bool has_experts(const BlockBuilder& builder) {
  return last_layer(builder.model()) == BlockKind::kMoe;
}

Linear projection(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  Linear layer;
  layer.names = {
      "join projection", "join projection input gradient", "join projection weight gradient"};
  layer.n = ceil_div(shape.hidden, shape.tp);
  layer.k = 2 * shape.hidden;
  layer.rows = shape.tokens;
  return layer;
}

/// Column-parallel columns of all ranks, or with sequence parallelism rows of the gradient.
Operator gather_columns(const BlockBuilder& builder, Pass pass) {
  return builder.collective(
      {"tp all-gather", CollectiveKind::kAllGather, MeshDimension::kTp, builder.shape().full()},
      pass);
}

void join(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  builder.norm("embedding norm", false);
  builder.norm("state norm", false);
  builder.elementwise("join", {4 * shape.split(), 0});
  builder.gather_input(projection(builder));
  builder.linear(projection(builder));
  if (shape.tp > 1)
    builder.then(gather_columns(builder, builder.forward_pass()));
}

}  // namespace

void prediction_forward(BlockBuilder& builder) {
  embedding_forward(builder);
  join(builder);
  if (has_experts(builder))
    moe_layer_forward(builder);
  else
    dense_forward(builder);
}

void prediction_backward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  builder.forward_as(Pass::kRecompute);
  if (recomputation(builder.context()).block)
    join(builder);
  if (has_experts(builder))
    moe_layer_backward(builder);
  else
    dense_backward(builder);
  if (shape.sequence_parallel)
    builder.then(gather_columns(builder, Pass::kInputGradient));
  builder.linear_gradients(projection(builder));
  builder.norm_gradient("state norm gradient", false);
  builder.norm_gradient("embedding norm gradient", false);
  // The state is the head's input as well.
  builder.gradient("state gradient sum", OperatorKind::kElementwise, {3 * shape.split(), 0});
  embedding_backward(builder);
}

std::vector<Stash> prediction_stash(const BlockBuilder& builder) {
  const Bytes hidden_state{builder.shape().split() * builder.shape().element};
  std::vector<Stash> stash = embedding_stash(builder);
  stash.push_back({"embedding norm input", hidden_state});
  stash.push_back({"state norm input", hidden_state});
  if (recomputation(builder.context()).block)
    return stash;
  stash.push_back(
      {"join projection input", Bytes{builder.kept_input(2 * builder.shape().split())}});
  const std::vector<Stash> layer =
      has_experts(builder) ? moe_layer_stash(builder) : dense_stash(builder);
  stash.insert(stash.end(), layer.begin(), layer.end());
  return stash;
}

}  // namespace foretrain
