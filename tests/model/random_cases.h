#pragma once

#include "foretrain/model.h"
#include "sim/base/random.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

/// Random models and layouts; every draw is a function of the case number.
namespace foretrain::random_cases {

constexpr std::uint64_t kCases = 200;

/// Draws of one case.
class Draw {
 public:
  explicit Draw(std::uint64_t number) : case_(number) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits(17, case_, next_++) %
                                     static_cast<std::uint64_t>(n));
  }
  bool coin() { return below(2) == 1; }

 private:
  std::uint64_t case_;
  std::uint64_t next_ = 0;
};

inline void add_experts(Draw& draw, ModelConfig& model) {
  model.layers = 2 + draw.below(5);
  model.experts = 8 * (1 + draw.below(4));
  model.experts_per_token = 1 + draw.below(8);
  model.expert_ffn = 64 * (1 + draw.below(16));
  model.shared_ffn = draw.coin() ? model.expert_ffn : 0;
  model.dense_first = draw.below(2);
  model.router_bias = draw.coin();
}

inline void add_latents(Draw& draw, ModelConfig& model) {
  model.qkv_bias = model.output_bias = model.qk_norm = model.learned_positions = false;
  model.layer_norm = false;
  model.max_positions = model.sliding_window = 0;
  model.q_lora_rank = 64 * draw.below(4);
  model.kv_lora_rank = 64 * (1 + draw.below(4));
  model.qk_nope_dim = 16 * (1 + draw.below(8));
  model.qk_rope_dim = 16 * (1 + draw.below(4));
  model.v_head_dim = 16 * (1 + draw.below(8));
}

/// Every split dimension is divisible by 8. Half of them have experts, a third multi-latent
/// attention.
inline ModelConfig random_model(Draw& draw) {
  ModelConfig model;
  model.model_type = "llama";
  model.kv_heads = 8 * (1 + draw.below(2));
  model.heads = model.kv_heads * (1 + draw.below(4));
  model.head_dim = 16 * (1 + draw.below(8));
  model.hidden = 64 * (1 + draw.below(64));
  model.layers = 1 + draw.below(5);
  model.ffn = 64 * (1 + draw.below(64));
  model.vocabulary = 8 * (1 + draw.below(4000));
  model.gated_mlp = draw.coin();
  model.tied_embeddings = draw.coin();
  model.qkv_bias = draw.coin();
  model.output_bias = draw.coin();
  model.mlp_bias = draw.coin();
  model.layer_norm = draw.coin();
  model.qk_norm = draw.coin();
  model.learned_positions = draw.coin();
  model.max_positions = model.learned_positions ? 4096 : 0;
  model.sliding_window = draw.coin() ? 32 * (1 + draw.below(40)) : 0;
  model.mtp_layers = draw.below(3);
  if (draw.coin())
    add_experts(draw, model);
  if (draw.below(3) == 0)
    add_latents(draw, model);
  return model;
}

inline BlockContext random_context(Draw& draw, const ModelConfig& model) {
  BlockContext at;
  at.sequence_length = 128 * (1 + draw.below(16));
  at.micro_batch_size = 1 + draw.below(3);
  at.tp = std::int64_t{1} << draw.below(4);
  at.sequence_parallel = draw.coin();
  at.recompute = static_cast<RecomputeMode>(draw.below(4));
  at.fused_operators = draw.coin();
  at.flash_attention = draw.coin();
  at.fused_gradient_accumulation = draw.coin();
  at.textbook = draw.coin();
  for (const char* module :
       {"layernorm", "mlp", "core_attn", "moe", "moe_act", "shared_experts", "mla_up_proj"}) {
    if (draw.coin())
      at.recompute_modules.emplace_back(module);
  }
  at.ep = std::int64_t{1} << draw.below(4);
  at.etp = std::int64_t{1} << draw.below(3);
  // Without it every rank multiplies all tokens by the matrices that tp does not split.
  at.sequence_parallel = at.sequence_parallel || model.experts > 0 || model.kv_lora_rank > 0;
  if (model.sliding_window == 0) {
    at.cp = std::int64_t{1} << draw.below(4);
    at.overlap_cp = draw.coin();
    at.cp_kind = static_cast<ContextKind>(draw.below(3));
    if (at.cp_kind == ContextKind::kUlysses && model.heads % (at.tp * at.cp) != 0)
      at.cp_kind = ContextKind::kRing;
  }
  constexpr const char* kDispatchers[] = {"alltoall", "allgather", "flex", "deepep"};
  at.dispatcher = kDispatchers[draw.below(4)];
  return at;
}

struct Case {
  explicit Case(std::uint64_t number)
      : draw(number), model(random_model(draw)), at(random_context(draw, model)) {}
  Draw draw;
  ModelConfig model;
  BlockContext at;
  BlockOperators block(BlockKind kind) const { return block_operators(model, kind, at); }
  /// Its blocks with all prediction modules, each of which runs the head once more.
  std::vector<BlockKind> blocks() const {
    std::vector<BlockKind> all = model_blocks(model);
    for (std::int64_t module = 0; module < model.mtp_layers; ++module)
      all.insert(all.end(), {BlockKind::kPrediction, BlockKind::kHead});
    return all;
  }
  /// Kinds of its blocks, each once.
  std::vector<BlockKind> kinds() const {
    std::vector<BlockKind> all = blocks();
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  std::vector<BlockKind> layer_kinds() const {
    std::vector<BlockKind> layers = kinds();
    const auto is_end = [](BlockKind kind) {
      return kind == BlockKind::kEmbedding || kind == BlockKind::kHead;
    };
    layers.erase(std::remove_if(layers.begin(), layers.end(), is_end), layers.end());
    return layers;
  }
};

inline Int128 flops(const std::vector<Operator>& operators, bool recomputed) {
  Int128 sum = 0;
  for (const Operator& op : operators) {
    if ((op.pass == Pass::kRecompute) == recomputed)
      sum += op.flops.value;
  }
  return sum;
}

inline auto key(const Operator& op) {
  return std::tuple(op.name,
                    op.kind,
                    op.pass,
                    op.flops.value,
                    op.bytes.value,
                    op.m,
                    op.n,
                    op.k,
                    op.gemms,
                    op.copies,
                    op.detached,
                    op.collective,
                    op.dimension,
                    op.payload.value);
}

template <typename... Lists>
auto multiset_of(const Lists&... lists) {
  std::map<decltype(key(Operator{})), int> counts;
  const auto count = [&](const std::vector<Operator>& list) {
    for (const Operator& op : list)
      ++counts[key(op)];
  };
  (count(lists), ...);
  return counts;
}

}  // namespace foretrain::random_cases
