#include "sim/validate/words.h"

namespace foretrain {
namespace {

// Stacks: the preset nearest in family and year; what is known beyond it is set after it.
// Megatron-DeepSpeed runs Megatron's fused kernels under DeepSpeed's engine, which reduces
// gradients when the backward is over.
constexpr std::string_view kMegatronDeepSpeed =
    "stack.name=deepspeed-2021 | stack.fused_operators=true | overlap.dp_grad=false | "
    "overlap.dp_param=false";
// Megatron before the distributed optimizer: gradients are reduced when the backward is over.
constexpr std::string_view kMegatron2021 =
    "stack=megatron-2021 | overlap.dp_grad=false | overlap.dp_param=false";
constexpr std::string_view kMegatron2022 =
    "stack=megatron-2022 | overlap.dp_grad=false | overlap.dp_param=false";
constexpr std::string_view kMegatron2023 =
    "stack.name=megatron-2023 | stack.attention_kernel=flash-2";
// NVIDIA's performance recipes reduce gradients in bf16: NeMo's grad_sync_dtype, and
// grad_reduce_in_fp32 = False since.
constexpr std::string_view kRecipe2024 = "stack=megatron-2024 | training.grad_dtype=bf16";
// Megatron-Bridge's also send tokens with the flex dispatcher: DeepEP, HybridEP in NVLink domains.
constexpr std::string_view kBridge =
    "stack.name=megatron-2025 | stack.dispatcher=deepep | training.grad_dtype=bf16";
// PyTorch without a compiler: norms and element-wise operators are kernels of their own.
constexpr std::string_view kTorchEager =
    "stack.name=torchtitan-2024 | stack.fused_operators=false | stack.host_launch=6 us";
// The training files of the time ask for Triton's attention, FlashAttention's first algorithm.
constexpr std::string_view kMosaic =
    "stack.name=torchtitan-2024 | stack.fused_operators=false | stack.host_launch=6 us | "
    "stack.attention_kernel=flash-1";

// Transfers between pipeline ranks block in DeepSpeed's engine (runtime/pipe/p2p.py: send and recv,
// one by one) and in Megatron-LM, which waits for each batch of them; its interleaved schedule
// overlaps them by option since May 2023 (f9283c5a8a), by default since October 2023 (4eeff55d1f).
constexpr PublishedSource kSources[] = {
    {.spelling = "ground_truth_single",
     .detail = "",
     .label = "vtrain single-node",
     .settings = kMegatronDeepSpeed,
     .sharding = "none",
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "vTrain",
     .detail = "",
     .label = "vtrain multi-node",
     .settings = kMegatronDeepSpeed,
     .sharding = "none",
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "bigscience",
     .detail = "",
     .label = "bloom",
     .settings = kMegatronDeepSpeed,
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "Hagemann",
     .detail = "",
     .label = "alephalpha",
     .settings = "stack.name=deepspeed-2023 | overlap.dp_grad=false | overlap.dp_param=false",
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "llm-foundry", .detail = "", .label = "mosaic", .settings = kMosaic},
    {.spelling = "fms-fsdp", .detail = "", .label = "fms", .settings = "stack=torchtitan-2024"},
    {.spelling = "TinyLlama",
     .detail = "",
     .label = "tinyllama",
     .settings = "stack=torchtitan-2024",
     .sharding = "zero3"},
    {.spelling = "torchtitan",
     .detail = "",
     .label = "torchtitan",
     .settings = "stack.name=torchtitan-2024 | parallelism.cp_kind=all_gather"},
    {.spelling = "nanotron", .detail = "", .label = "nanotron", .settings = kTorchEager},
    {.spelling = "InternEvo", .detail = "", .label = "internevo", .settings = kMegatron2023},
    {.spelling = "SC21",
     .detail = "",
     .label = "sc21",
     .settings = kMegatron2021,
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "Korthikanti",
     .detail = "",
     .label = "korthikanti",
     .settings = kMegatron2022,
     .transfers_block = true},
    {.spelling = "Megatron-LM README",
     .detail = "(2020-",
     .label = "megatron 2020",
     .settings = kMegatron2021,
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "Megatron-LM README",
     .detail = "(2021-",
     .label = "megatron 2021",
     .settings = kMegatron2021,
     .sequence_parallel = false,
     .transfers_block = true},
    {.spelling = "Megatron-LM README",
     .detail = "",
     .label = "megatron 2024",
     .settings = "stack=megatron-2024",
     .interleaves = true},
    {.spelling = "MT-NLG",
     .detail = "",
     .label = "mt-nlg",
     .settings = kMegatronDeepSpeed,
     .sharding = "none",
     .sequence_parallel = false,
     .transfers_block = true},
    // 59 GB at 1.5B parameters and 16 micro-batches in flight: attention is not fused.
    {.spelling = "Zero Bubble",
     .detail = "",
     .label = "zero-bubble",
     .settings = "stack=megatron-2022",
     .sharding = "none"},
    {.spelling = "MegaScale",
     .detail = "",
     .label = "megascale",
     .settings = kMegatron2023,
     .no_recompute_in_flops = true},
    // It recomputes the core attention selectively, which only unfused attention needs.
    {.spelling = "tags 23.", .detail = "", .label = "nemo 2023", .settings = "stack=megatron-2022"},
    {.spelling = "NeMo",
     .detail = "",
     .label = "nemo 2024",
     .settings = kRecipe2024,
     .interleaves = true},
    {.spelling = "Nemotron-4 340B report",
     .detail = "",
     .label = "nemotron-4",
     .settings = "stack=megatron-2024",
     .interleaves = true},
    {.spelling = "MLPerf", .detail = "", .label = "mlperf", .settings = kRecipe2024},
    {.spelling = "dgxc-benchmarking",
     .detail = "",
     .label = "dgxc",
     .settings = kRecipe2024,
     .experts_over_tp = true},
    {.spelling = "Megatron-Bridge", .detail = "", .label = "bridge", .settings = kBridge},
    {.spelling = "ModelZoo", .detail = "", .label = "modelzoo", .settings = "stack=megatron-2025"},
    {.spelling = "Megatron-Core MoE report",
     .detail = "",
     .label = "mcore-moe",
     .settings = "stack=megatron-2025"},
    {.spelling = "SimuMax", .detail = "", .label = "simumax", .settings = "stack=megatron-2025"},
    // Whatever else: what is simulated where nothing is said.
    {.spelling = "", .detail = "", .label = "", .settings = "stack=megatron-2024"},
};

bool contains(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

std::span<const PublishedSource> published_sources() {
  return kSources;
}

const PublishedSource& source_of(const PublishedRow& row) {
  // The table of memory verdicts names kernels and no source: its runs are that study's.
  const std::string name = row.source.empty() && !row.kernel.empty() ? "Hagemann" : row.source;
  for (const PublishedSource& source : kSources) {
    if (contains(name, source.spelling) && contains(row.source_detail, source.detail)) {
      return source;
    }
  }
  return *std::rbegin(kSources);
}

}  // namespace foretrain
