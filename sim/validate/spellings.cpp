#include "sim/validate/words.h"

namespace foretrain {
namespace {

using enum PublishedColumn;

// Later settings win: the kernel, the overlap note and the notes stand behind the columns.
constexpr Spelling kSpellings[] = {
    {kDtype, "bf16", "training.dtype=bf16"},
    {kDtype, "fp16", "training.dtype=fp16"},
    {kDtype, "fp8", R"(training.dtype={"compute": "fp8", "recipe": "tensorwise"})", "torchtitan"},
    {kDtype, "fp8", R"(training.dtype={"compute": "fp8", "recipe": "delayed"})"},
    {kDtype, "fp8-cs", R"(training.dtype={"compute": "fp8", "recipe": "tensorwise"})"},
    {kDtype, "fp8-block", R"(training.dtype={"compute": "fp8", "recipe": "blockwise"})"},
    {kDtype, "mxfp8", R"(training.dtype={"compute": "fp8", "recipe": "mxfp8"})"},
    {kDtype, "nvfp4", R"(training.dtype={"compute": "nvfp4"})"},

    {kSharding, "zero0", "parallelism.sharding=none"},
    {kSharding, "zero1", "parallelism.sharding=zero1"},
    {kSharding, "zero2", "parallelism.sharding=zero2"},
    {kSharding, "zero3", "parallelism.sharding=zero3"},
    // States are sharded in a node and replicated across nodes.
    {kSharding, "hsdp", "parallelism.sharding=zero3 | parallelism.shard_group=8"},

    {kRecompute, "none", "recompute.mode=none"},
    // FSDP wraps whole layers, a share of them; torchtitan keeps every second matrix product.
    {.column = kRecompute,
     .word = "selective",
     .settings = "",
     .source = "fms",
     .layers_as_needed = true},
    {kRecompute,
     "selective",
     R"(recompute={"mode": "modules", "modules": ["layernorm", "mlp"]})",
     "torchtitan",
     "half the matrix products recomputed: the MLP's"},
    {kRecompute, "selective", "recompute.mode=selective"},
    {kRecompute, "full", "recompute.mode=full"},

    {kSchedule, "none", "schedule=1f1b"},
    {kSchedule, "1F1B", "schedule=1f1b"},
    {kSchedule, "1F1B-R", "schedule=1f1b | recompute.mode=full"},
    {kSchedule, "1F1B-I", "schedule=interleaved"},
    {kSchedule, "interleaved-1F1B", "schedule=interleaved"},
    {kSchedule, "ZB-1p", "schedule=zb-h1"},
    {kSchedule, "ZB-1P", "schedule=zb-h1"},
    {kSchedule, "ZB-2p", "schedule=zb-h2"},
    {kSchedule, "V-Half", "schedule=v-half", "", "", 2},
    {kSchedule, "V-Min", "schedule=v-min", "", "", 2},
    {kSchedule, "V-ZB", "schedule=zb-v", "", "", 2},

    {kKernel, "torch", "stack.attention_kernel=unfused"},
    {kKernel, "fused", "stack.attention_kernel=unfused"},
    {kKernel, "flash_attention", "stack.attention_kernel=flash-1"},
    {kKernel, "flash_attentionv1", "stack.attention_kernel=flash-1"},
    {kKernel, "flash_attention2", "stack.attention_kernel=flash-2"},
    {kKernel, "RMS kernel", "stack.fused_operators=true"},

    {kOverlap, "mode PURE", "training.grad_dtype=bf16"},
    {kOverlap, "FSDP eager", "stack.fused_operators=false | stack.host_launch=6 us"},
    {kOverlap, "DeepSpeed ZeRO-3", "stack=deepspeed-2021"},
    {kOverlap, "use_gradient_bucket=false", "overlap.dp_grad=false | overlap.dp_param=false"},
    {kOverlap, "overlap_grad_sync False", "overlap.dp_grad=false | overlap.dp_param=false"},
    {kOverlap, "p2p overlap", "overlap.pp=true"},
    {kOverlap, "overlap_p2p true", "overlap.pp=true"},
    {kOverlap, "decoupled async PP send/recv", "overlap.pp=true"},
    {kOverlap, "no overlap:", "overlap.dp_grad=false | overlap.dp_param=false | overlap.pp=false"},
    // MegaScale compares with Megatron-LM of January 2023 and adds its own overlap step by step.
    {kOverlap, "Megatron-LM", "overlap.pp=false", "megascale"},
    {kOverlap, "cumulative: +parallel transformer block", "overlap.pp=false"},
    {kOverlap, "cumulative: +sliding window attention", "overlap.pp=false"},
    {kOverlap, "cumulative: +TP overlap", "overlap.pp=false"},
    // Its authors' runtime sums the tied tables' gradients while weight gradients are left, so the
    // first and the last rank do not wait for one another (sail-sg/zero-bubble, ed85b11c).
    {kOverlap,
     "optimizer post-validation",
     "schedule.barrier=false | model.tie_word_embeddings=false",
     "",
     "gradients of tied tables summed behind weight gradients"},
    {kOverlap, "global all-reduce synchronisation", "schedule.barrier=true"},
    {kOverlap, "CP=all-to-all", "parallelism.cp_kind=ulysses"},
    {kOverlap, "shard group 8 ranks", "parallelism.shard_group=8"},
    {kOverlap, "shard group 4 ranks", "parallelism.shard_group=4"},
    {kOverlap, "TP comm overlap (userbuffers)", "overlap.tp=true"},
    {kOverlap, "ub_tp_comm_overlap true", "overlap.tp=true"},
    {kOverlap, "--tp-comm-overlap", "overlap.tp=true"},
    {kOverlap, "async TP", "overlap.tp=true"},
    {kOverlap, "TP AG/RS fused+chunked with GEMM", "overlap.tp=true"},
    {kOverlap, "A2A_OVERLAP=0", "overlap.ep=false"},
    {kOverlap, "cumulative: +", "", "", "changes of the ablation left out"},

    {kNotes, "parallel transformer block", "", "", "serial blocks, attention everywhere"},
    {kNotes, "causal-half + 1 MTP layer", "training.multi_token_prediction=1"},
    {kNotes, "CUDA graphs", "stack.cuda_graphs=true"},
    {kNotes, "DeepEP", "stack.dispatcher=deepep"},
    {kNotes, "HybridEP", "stack.dispatcher=deepep", "", "HybridEP as DeepEP"},
    {kNotes, "a2a overlap", "overlap.ep=true"},
    {kNotes, "capacity factor 1 with padding", "stack.expert_capacity=1"},
    {kNotes, "ETP=1", "parallelism.etp=1"},
    {kNotes, "routing dropless", "", "", "balanced experts"},
    {kNotes, "FP8 attention", "training.dtype.attention=fp8"},
    {kNotes,
     "recompute norm,act",
     R"(recompute={"mode": "modules", "modules": ["layernorm", "moe_act"]})"},
    {kNotes,
     "recompute modules layernorm+moe",
     R"(recompute={"mode": "modules", "modules": ["layernorm", "moe"]})"},
    {kNotes, "recompute mlp", R"(recompute={"mode": "modules", "modules": ["mlp"]})"},
    {kNotes, "activation offload", "", "", "activations stay on the GPU"},
};

/// The kernel has a column, or stands alone in the overlap note.
const std::string& text_of(PublishedColumn column, const PublishedRow& row) {
  const bool in_note = row.kernel.empty() && row.overlap_note.starts_with("kernel=");
  return column == kNotes                ? row.notes
         : column == kOverlap || in_note ? row.overlap_note
                                         : row.kernel;
}

bool is_for(const Spelling& spelling, const PublishedSource& source) {
  return spelling.source.empty() || spelling.source == source.label;
}

}  // namespace

std::span<const Spelling> spellings() {
  return kSpellings;
}

const Spelling* spelling_of(PublishedColumn column,
                            const std::string& word,
                            const PublishedSource& source) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.column == column && spelling.word == word && is_for(spelling, source)) {
      return &spelling;
    }
  }
  return nullptr;
}

std::vector<const Spelling*> spellings_within(const PublishedRow& row,
                                              const PublishedSource& source) {
  std::vector<const Spelling*> found;
  for (const Spelling& spelling : kSpellings) {
    const bool within =
        spelling.column == kKernel || spelling.column == kOverlap || spelling.column == kNotes;
    if (within && is_for(spelling, source) &&
        text_of(spelling.column, row).find(spelling.word) != std::string::npos) {
      found.push_back(&spelling);
    }
  }
  return found;
}

std::vector<std::string> split_settings(std::string_view settings) {
  constexpr std::string_view kBar = " | ";
  std::vector<std::string> list;
  while (!settings.empty()) {
    const std::size_t end = settings.find(kBar);
    list.emplace_back(settings.substr(0, end));
    settings.remove_prefix(end == std::string_view::npos ? settings.size() : end + kBar.size());
  }
  return list;
}

}  // namespace foretrain
