#include "sim/model/block_shape.h"

#include "sim/model/attention_pairs.h"
#include "sim/model/parameters.h"

namespace foretrain {

BlockShape::BlockShape(const ModelConfig& model, const BlockContext& context) {
  const std::int64_t sequence = context.sequence_length;
  const std::int64_t batch = context.micro_batch_size;
  tp = context.tp;
  element = context.element_bytes;
  hidden = model.hidden;
  tokens = sequence * batch;
  sequence_parallel = context.sequence_parallel && tp > 1;
  split_tokens = sequence_parallel ? ceil_div(tokens, tp) : tokens;

  const std::int64_t heads = ceil_div(model.heads, tp);
  query_width = heads * model.head_dim;
  kv_width = local_kv_heads(model, tp) * model.head_dim;
  ffn = ceil_div(model.ffn, tp);
  up_width = model.gated_mlp ? 2 * ffn : ffn;
  vocabulary = ceil_div(model.vocabulary, tp);
  score_count = heads * sequence * sequence * batch;
  attention_flops = 2 * query_width * twice_causal_pairs(sequence, model.sliding_window) * batch;
  statistics = heads * tokens;
  fused = context.fused_operators;
  flash = context.flash_attention;
  dropout = model.layer_norm;
  rotary = !model.learned_positions;
}

}  // namespace foretrain
