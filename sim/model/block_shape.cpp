#include "sim/model/block_shape.h"

#include "sim/model/attention_pairs.h"
#include "sim/model/parameters.h"

#include <algorithm>

namespace foretrain {

BlockShape::BlockShape(const ModelConfig& model, const BlockContext& context) {
  const std::int64_t whole_sequence = context.sequence_length;
  const std::int64_t prefix = context.prefix_length;
  const std::int64_t batch = context.micro_batch_size;
  tp = context.tp;
  cp = context.cp;
  element = context.element_bytes;
  hidden = model.hidden;
  sequence = ceil_div(whole_sequence, cp);
  document = context.document_length > 0 ? std::min(context.document_length, whole_sequence)
                                         : whole_sequence;
  tokens = sequence * batch;
  sequence_parallel = context.sequence_parallel && tp > 1;
  split_tokens = sequence_parallel ? ceil_div(tokens, tp) : tokens;

  heads = ceil_div(model.heads, tp);
  const bool latent = is_mla(model);
  qk_dim = latent ? model.qk_nope_dim + model.qk_rope_dim : model.head_dim;
  const std::int64_t value_dim = latent ? model.v_head_dim : model.head_dim;
  const std::int64_t kv_heads = latent ? heads : local_kv_heads(model, tp);
  query_width = heads * qk_dim;
  key_width = kv_heads * qk_dim;
  value_width = kv_heads * value_dim;
  output_width = heads * value_dim;
  ffn = ceil_div(model.ffn, tp);
  vocabulary = ceil_div(model.vocabulary, tp);
  score_count = heads * (prefix + whole_sequence) * sequence * batch;
  const AttentionMask mask{model.sliding_window, context.document_length};
  // Ulysses gives a rank some heads of whole sequences, the others all heads of zig-zag halves.
  const bool by_heads = cp > 1 && context.cp_kind == ContextKind::kUlysses;
  // A slice sees the slices before it; all together they have the pairs of the whole sequence.
  const std::int64_t pairs =
      cp > 1 && !by_heads
          ? twice_pairs_of_hottest(whole_sequence, mask, cp)
          : twice_pairs_before(prefix + whole_sequence, mask) - twice_pairs_before(prefix, mask);
  attention_flops = (by_heads ? ceil_div(heads, cp) : heads) * (qk_dim + value_dim) * pairs * batch;
  statistics = heads * tokens;
  fused = context.fused_operators;
  flash = context.flash_attention;
  dropout = model.layer_norm;
  rotary = !model.learned_positions;
}

}  // namespace foretrain
