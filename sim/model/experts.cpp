#include "sim/model/experts.h"

#include "sim/model/mlp.h"
#include "sim/model/parameters.h"

#include <cmath>

namespace foretrain {

namespace {

constexpr MlpNames kExpertNames{
    {"expert up", "expert up input gradient", "expert up weight gradient"},
    {"expert down", "expert down input gradient", "expert down weight gradient"},
    "expert swiglu",
    "expert swiglu gradient",
    "expert gelu",
    "expert gelu gradient",
    "expert gate output",
    "expert up output",
    "expert silu output",
    "expert activation output"};

constexpr MlpNames kSharedNames{
    {"shared expert up", "shared expert up input gradient", "shared expert up weight gradient"},
    {"shared expert down",
     "shared expert down input gradient",
     "shared expert down weight gradient"},
    "shared expert swiglu",
    "shared expert swiglu gradient",
    "shared expert gelu",
    "shared expert gelu gradient",
    "shared expert gate output",
    "shared expert up output",
    "shared expert silu output",
    "shared expert activation output"};

/// Router scores are 32-bit numbers.
constexpr std::int64_t kScoreBytes = 4;

std::int64_t scaled(std::int64_t count, double factor) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(count) * factor));
}

Linear router(const BlockBuilder& builder, const ExpertShape& routed) {
  const ModelConfig& model = builder.model();
  Linear layer;
  layer.names = {"router", "router input gradient", "router weight gradient"};
  layer.n = model.experts;
  layer.k = model.hidden;
  layer.split = WeightSplit::kNone;
  layer.rows = routed.tokens;
  layer.bias = model.router_bias ? model.experts : 0;
  layer.never_narrow = true;
  return layer;
}

/// The rank's experts side by side. Their width is cut over etp; what etp ranks exchange are whole
/// rows, so the layers themselves have no collective.
Mlp routed_experts(const BlockBuilder& builder, const ExpertShape& routed) {
  const ModelConfig& model = builder.model();
  const std::int64_t etp = builder.context().etp;
  const std::int64_t local = ceil_div(model.expert_ffn, etp);
  const std::int64_t factor = model.gated_mlp ? 2 : 1;
  Mlp mlp;
  mlp.names = &kExpertNames;
  mlp.width = routed.rows * local;
  mlp.weighted = true;
  mlp.up.names = kExpertNames.up;
  mlp.up.n = factor * local;
  mlp.up.k = model.hidden;
  mlp.up.split = WeightSplit::kNone;
  mlp.up.rows = routed.rows;
  mlp.up.bias = model.mlp_bias ? factor * model.expert_ffn : 0;
  mlp.up.sharers = etp;
  mlp.up.gemms = routed.local;
  mlp.down = mlp.up;
  mlp.down.names = kExpertNames.down;
  mlp.down.n = model.hidden;
  mlp.down.k = local;
  mlp.down.bias = model.mlp_bias ? model.hidden : 0;
  return mlp;
}

Mlp shared_experts(const BlockBuilder& builder) {
  return split_mlp(builder, kSharedNames, builder.model().shared_ffn);
}

/// Scores, top-k and the routing map: passes over one 32-bit score per token and expert.
std::int64_t routing_elements(const BlockBuilder& builder, const ExpertShape& routed) {
  const std::int64_t passes = builder.shape().fused ? 3 : 8;
  return passes * routed.tokens * builder.model().experts * kScoreBytes / builder.shape().element;
}

/// To the experts' ranks, or back. Both ways the hottest rank's copies count.
Operator exchange(const BlockBuilder& builder,
                  const ExpertShape& routed,
                  std::string_view name,
                  bool to_experts,
                  Pass pass) {
  Transfer transfer{name, CollectiveKind::kAllToAll, MeshDimension::kEp, routed.received};
  if (routed.all_gather) {
    transfer.kind = to_experts ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter;
    transfer.elements = routed.tokens * builder.context().ep;
  }
  transfer.elements *= builder.shape().hidden;
  Operator op = builder.collective(transfer, pass);
  // DeepEP sends 8-bit tokens to the experts, with a scale for every 128 numbers.
  const BlockContext& context = builder.context();
  if (to_experts && context.dispatcher == "deepep" && context.precision.recipe == "blockwise")
    op.payload = Bytes{builder.quantisation().bytes(transfer.elements)};
  op.copies = routed.all_gather ? 1 : builder.model().experts_per_token;
  return op;
}

/// Rows of the etp group's other ranks, or their sums: every rank of it holds a slice of each
/// expert.
Operator exchange_slices(const BlockBuilder& builder,
                         const ExpertShape& routed,
                         bool to_experts,
                         Pass pass) {
  return builder.collective(
      {to_experts ? "etp all-gather" : "etp reduce-scatter",
       to_experts ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter,
       MeshDimension::kEtp,
       routed.at_hand * builder.shape().hidden},
      pass);
}

/// A way between the tokens and the experts' rows; `back`: as the gradient of the opposite way.
struct Way {
  bool back = false;
  std::string_view permute, exchange, sort;
};

void move_rows(BlockBuilder& builder,
               const Way& way,
               std::string_view name,
               std::int64_t read,
               std::int64_t written) {
  const Traffic traffic{(read + written) * builder.shape().hidden, 0};
  if (way.back)
    builder.gradient(name, OperatorKind::kElementwise, traffic);
  else
    builder.elementwise(name, traffic);
}

void to_experts(BlockBuilder& builder, const ExpertShape& routed, const Way& way) {
  const Pass pass = way.back ? Pass::kInputGradient : builder.forward_pass();
  if (routed.sorted_before)
    move_rows(builder, way, way.permute, routed.sent, routed.sent);
  if (builder.context().ep > 1)
    builder.then(exchange(builder, routed, way.exchange, true, pass));
  if (builder.context().etp > 1)
    builder.then(exchange_slices(builder, routed, true, pass));
  if (routed.sorted_after)
    move_rows(builder, way, way.sort, routed.rows, routed.rows);
}

void from_experts(BlockBuilder& builder, const ExpertShape& routed, const Way& way) {
  const Pass pass = way.back ? Pass::kInputGradient : builder.forward_pass();
  if (routed.sorted_after)
    move_rows(builder, way, way.sort, routed.rows, routed.at_hand);
  if (builder.context().etp > 1)
    builder.then(exchange_slices(builder, routed, false, pass));
  if (builder.context().ep > 1)
    builder.then(exchange(builder, routed, way.exchange, false, pass));
  if (routed.sorted_before)
    move_rows(builder, way, way.permute, routed.sent, routed.tokens);
}

}  // namespace

ExpertShape::ExpertShape(const BlockBuilder& builder) {
  const ModelConfig& model = builder.model();
  const BlockContext& context = builder.context();
  tokens = builder.shape().split_tokens;
  local = ceil_div(model.experts, context.ep);
  sent = tokens * model.experts_per_token;
  if (context.expert_capacity > 0) {
    const double mean = static_cast<double>(sent) / static_cast<double>(model.experts);
    sent = model.experts * static_cast<std::int64_t>(std::ceil(context.expert_capacity * mean));
    received = sent;
  } else {
    received = scaled(sent, context.expert_load);
  }
  rows = received * context.etp;
  all_gather = context.dispatcher == "allgather";
  at_hand = all_gather ? tokens * context.ep * context.etp : rows;
  const bool alone = context.ep == 1 && context.etp == 1;
  const bool forwards = context.dispatcher == "flex" || context.dispatcher == "deepep";
  sorted_before = alone || !(all_gather || forwards);
  sorted_after = !sorted_before || (!alone && local > 1);
}

void moe_forward(BlockBuilder& builder) {
  const ExpertShape routed(builder);
  if (builder.model().shared_ffn > 0)
    mlp_forward(builder, shared_experts(builder));
  builder.linear(router(builder, routed));
  builder.elementwise("router top-k", {routing_elements(builder, routed), 0});
  if (builder.context().expert_capacity == 0) {
    // How many rows each expert gets is known on the device only; the host sizes what follows.
    Operator wait;
    wait.name = "token counts";
    wait.kind = OperatorKind::kHostSync;
    wait.pass = builder.forward_pass();
    builder.then(wait);
  }
  to_experts(builder, routed, {false, "permute", "ep dispatch", "sort by expert"});
  mlp_forward(builder, routed_experts(builder, routed));
  from_experts(builder, routed, {false, "unpermute", "ep combine", "unsort by expert"});
  if (builder.model().shared_ffn > 0)
    builder.elementwise("shared expert add", {3 * builder.shape().split(), 0});
}

void moe_gradients(BlockBuilder& builder, const Recomputation& again) {
  const ExpertShape routed(builder);
  if (again.moe)
    moe_forward(builder);
  to_experts(builder,
             routed,
             {true, "unpermute gradient", "ep combine gradient", "unsort by expert gradient"});
  mlp_gradients(builder, routed_experts(builder, routed), again.moe_activation && !again.moe);
  from_experts(builder,
               routed,
               {true, "permute gradient", "ep dispatch gradient", "sort by expert gradient"});
  builder.gradient(
      "router top-k gradient", OperatorKind::kElementwise, {routing_elements(builder, routed), 0});
  builder.linear_gradients(router(builder, routed));
  const bool shared = builder.model().shared_ffn > 0;
  if (shared) {
    if (again.shared_experts && !again.moe)
      mlp_forward(builder, shared_experts(builder));
    mlp_gradients(builder, shared_experts(builder), false);
  }
  // The normed hidden state feeds router, dispatch and shared experts.
  builder.gradient("expert gradient sum",
                   OperatorKind::kElementwise,
                   {(shared ? 6 : 3) * builder.shape().split(), 0});
}

void moe_stash(const BlockBuilder& builder, const Recomputation& again, StashList& stash) {
  if (again.moe)
    return;
  const ExpertShape routed(builder);
  const BlockShape& shape = builder.shape();
  const std::int64_t scores = routed.tokens * builder.model().experts * kScoreBytes;
  stash.add("router logits", scores);
  stash.add("router probabilities", scores);
  stash.add("expert input", builder.kept_input(routed.rows * shape.hidden));
  stash.add("routing weights", routed.rows * kScoreBytes);
  mlp_stash(builder, routed_experts(builder, routed), again.moe_activation, stash);
  if (builder.model().shared_ffn > 0 && !again.shared_experts)
    mlp_stash(builder, shared_experts(builder), false, stash);
}

}  // namespace foretrain
