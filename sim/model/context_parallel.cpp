#include "sim/model/attention.h"
#include "sim/model/parameters.h"

// The core attention over cp ranks that hold a part of every sequence each (MODEL 2.8).
namespace foretrain {

namespace {

using Vertex = BlockBuilder::Vertex;

/// Key and value elements of one rank's tokens.
std::int64_t key_values(const BlockShape& shape) {
  return shape.tokens * (shape.key_width + shape.value_width);
}

// --- ring --------------------------------------------------------------------------------------

/// One of cp equal steps: with zig-zag halves every step of every rank sees as many pairs. What
/// does not divide is left to the first.
AttentionKernel ring_step(const BlockShape& shape, std::int64_t step) {
  AttentionKernel kernel(shape);
  kernel.flops = kernel.flops / shape.cp + (step == 0 ? kernel.flops % shape.cp : 0);
  kernel.scores /= shape.cp;
  return kernel;
}

/// A message to the next rank of the ring, beside the kernels or on their path.
Vertex pass_on(BlockBuilder& builder, std::int64_t elements, Pass pass, std::vector<Vertex> after) {
  Operator op = builder.collective(
      {"cp ring pass", CollectiveKind::kSendReceive, MeshDimension::kCp, elements}, pass);
  if (!builder.context().overlap_cp)
    return builder.then(op);
  op.detached = true;
  return builder.graph().add(op, after);
}

/// Step i works on keys and values that came by message i - 1, which is on its way during step
/// i - 1; cp - 1 messages.
void ring_forward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  Vertex arrived = builder.path();
  for (std::int64_t step = 0; step < shape.cp; ++step) {
    const Vertex at_hand = arrived;
    const bool overlap = builder.context().overlap_cp;
    if (overlap && step + 1 < shape.cp)
      arrived = pass_on(builder, key_values(shape), builder.forward_pass(), {arrived});
    attention_kernel(builder, ring_step(shape, step), at_hand);
    if (!overlap && step + 1 < shape.cp)
      arrived = pass_on(builder, key_values(shape), builder.forward_pass(), {});
  }
  // Each later step's output is read and added to the sum, rescaled by its softmax statistics.
  builder.elementwise("cp output sum", {3 * (shape.cp - 1) * shape.tokens * shape.output_width, 0});
}

/// Keys and values go round again, cp - 1 times, from the last to have come; their gradients follow
/// one step behind, cp - 1 times too: the first message holds no gradients, the last nothing else
/// (Transformer Engine).
void ring_gradients(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  Vertex message = -1;
  Vertex summed = builder.path();
  for (std::int64_t step = 0; step < shape.cp; ++step) {
    const Vertex at_hand = message;
    const std::int64_t tensors = (step + 1 < shape.cp ? 1 : 0) + (step > 0 ? 1 : 0);
    message =
        pass_on(builder, tensors * key_values(shape), Pass::kInputGradient, {message, summed});
    attention_kernel_gradient(builder, ring_step(shape, step), at_hand);
    if (step == 0) {
      summed = builder.path();
      continue;
    }
    Operator sum;
    sum.name = "cp gradient sum";
    sum.pass = Pass::kInputGradient;
    sum.bytes = Bytes{3 * (shape.tokens * shape.query_width + key_values(shape)) * shape.element};
    summed = builder.then(sum, message);
  }
}

// --- all-gather --------------------------------------------------------------------------------

Operator gather_key_values(const BlockBuilder& builder, CollectiveKind kind, Pass pass) {
  const BlockShape& shape = builder.shape();
  const bool gather = kind == CollectiveKind::kAllGather;
  return builder.collective({gather ? "cp all-gather" : "cp reduce-scatter",
                             kind,
                             MeshDimension::kCp,
                             shape.cp * key_values(shape)},
                            pass);
}

/// The rank's queries against the keys and values of whole sequences.
AttentionKernel gathered_kernel(const BlockBuilder& builder) {
  AttentionKernel kernel(builder.shape());
  kernel.sequence = builder.shape().document;
  kernel.key_value_elements *= builder.shape().cp;
  return kernel;
}

// --- Ulysses -----------------------------------------------------------------------------------

/// Key or value elements that are exchanged: a head is copied where there are fewer than ranks.
std::int64_t exchanged_key_values(const BlockShape& shape) {
  const std::int64_t heads = shape.key_width / shape.qk_dim;
  const std::int64_t copied = ceil_div(heads, shape.cp) * shape.cp;
  return key_values(shape) / heads * copied;
}

/// Whole sequences of some of the heads.
AttentionKernel whole_sequence_kernel(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  AttentionKernel kernel(shape);
  kernel.sequence = shape.document;
  kernel.heads = ceil_div(shape.heads, shape.cp);
  kernel.key_value_elements = exchanged_key_values(shape);
  return kernel;
}

Operator exchange_heads(const BlockBuilder& builder, bool output, Pass pass) {
  const BlockShape& shape = builder.shape();
  const std::int64_t elements =
      output ? shape.tokens * shape.output_width
             : shape.tokens * shape.query_width + exchanged_key_values(shape);
  return builder.collective(
      {"cp all-to-all", CollectiveKind::kAllToAll, MeshDimension::kCp, elements}, pass);
}

}  // namespace

void core_attention(BlockBuilder& builder) {
  const Pass pass = builder.forward_pass();
  if (builder.shape().cp == 1) {
    attention_kernel(builder, AttentionKernel(builder.shape()));
    return;
  }
  switch (builder.context().cp_kind) {
    case ContextKind::kRing:
      ring_forward(builder);
      return;
    case ContextKind::kAllGather:
      builder.then(gather_key_values(builder, CollectiveKind::kAllGather, pass));
      attention_kernel(builder, gathered_kernel(builder));
      return;
    case ContextKind::kUlysses:
      builder.then(exchange_heads(builder, false, pass));
      attention_kernel(builder, whole_sequence_kernel(builder));
      builder.then(exchange_heads(builder, true, pass));
      return;
  }
}

void core_attention_gradients(BlockBuilder& builder) {
  const Pass pass = Pass::kInputGradient;
  if (builder.shape().cp == 1) {
    attention_kernel_gradient(builder, AttentionKernel(builder.shape()));
    return;
  }
  switch (builder.context().cp_kind) {
    case ContextKind::kRing:
      ring_gradients(builder);
      return;
    case ContextKind::kAllGather:
      builder.then(gather_key_values(builder, CollectiveKind::kAllGather, pass));
      attention_kernel_gradient(builder, gathered_kernel(builder));
      builder.then(gather_key_values(builder, CollectiveKind::kReduceScatter, pass));
      return;
    case ContextKind::kUlysses:
      builder.then(exchange_heads(builder, true, pass));
      attention_kernel_gradient(builder, whole_sequence_kernel(builder));
      builder.then(exchange_heads(builder, false, pass));
      return;
  }
}

/// Korthikanti et al. 2022, section 4.1: attention scores without a flash kernel are softmax output
/// and, with dropout, its mask and the dropped-out output.
void core_attention_stash(const BlockBuilder& builder,
                          bool inputs_again,
                          bool attention_again,
                          StashList& stash) {
  const BlockShape& shape = builder.shape();
  const std::int64_t element = shape.element;
  const bool exchanged = shape.cp > 1 && builder.context().cp_kind == ContextKind::kUlysses;
  if (!inputs_again || exchanged) {
    stash.add("query", shape.tokens * shape.query_width * element);
    stash.add("key", shape.tokens * shape.key_width * element);
    stash.add("value", shape.tokens * shape.value_width * element);
  }
  // Attention's gradient reads the output in 16 bits, the projection's a narrow copy of it.
  const std::int64_t output = shape.tokens * shape.output_width;
  const bool narrow = builder.quantisation().on();
  if (narrow)
    stash.add("projection input", builder.kept_input(output));
  if (!narrow || !(attention_again || exchanged))
    stash.add("attention output", output * element);
  if (attention_again)
    return;
  if (exchanged) {
    // Attention keeps what it worked on, whole sequences of its heads; the projection its own
    // input.
    stash.add("key and value copies", (exchanged_key_values(shape) - key_values(shape)) * element);
    stash.add("output before all-to-all", output * element);
  }
  if (shape.flash) {
    stash.add("softmax statistics", 4 * shape.statistics);
    return;
  }
  stash.add("softmax output", shape.score_count * element);
  if (shape.dropout) {
    stash.add("softmax dropout mask", shape.score_count);
    stash.add("softmax dropout output", shape.score_count * element);
  }
}

}  // namespace foretrain
