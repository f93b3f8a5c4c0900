#include "sim/validate/words.h"

namespace foretrain {
namespace {

// The first row that fits counts: networks that are told stand before the usual one of a GPU.
// Peaks: dense 16-bit of NVIDIA's data sheets.
constexpr PublishedHardware kHardware[] = {
    {"V100-32GB", "", "dgx2-v100", "V100"},
    {"A100-40GB", "1600Gb/s RoCE", "a100-40gb-8x200-roce", "A100 40 GB", 312, true},
    {"A100-40GB", "", "dgx-a100-40gb-hdr200", "A100 40 GB", 312},
    {"A100-SXM-40GB", "", "dgx-a100-40gb-hdr200", "A100 40 GB", 312},
    {"A800-80GB", "", "a800-4x200-roce", "A800", 312, true},
    {"A100-SXM-80GB", "4x100Gb/s Omni-Path", "a100-4x100-opa", "A100", 312, true},
    {"A100-SXM-80GB", "4x100Gb/s RoCE", "a100-4x100-roce", "A100", 312, true},
    {"A100-SXM-80GB", "RoCE RDMA", "a100-8x200-roce", "A100", 312},
    {"A100-SXM-80GB", "", "dgx-a100-hdr200", "A100", 312, true},
    {"A100-80GB", "1600Gb/s RoCE", "a100-8x200-roce", "A100", 312, true},
    {"A100-80GB", "400Gb/s per node", "a100-4x100-roce", "A100", 312, true},
    {"A100-80GB", "8x200Gb/s", "dgx-a100-hdr200", "A100", 312, true},
    {"A100-80GB", "", "dgx-a100-hdr200", "A100", 312},
    {"A100 (paper: NVIDIA Ampere)",
     "8x200Gb/s per node, RoCE",
     "a100-8x200-roce",
     "A100",
     312,
     true},
    {"A100 (paper: NVIDIA Ampere)", "", "dgx-a100-hdr200", "A100", 312},
    {"A100", "800Gb/s per node", "a100-4x200", "A100", 312, true},
    {"A100", "", "dgx-a100-hdr200", "A100", 312, true},
    {"H100-96GB-HBM2e-500W", "", "h100-96gb-500w-400", "H100 500 W", 0, true},
    {"H100-80GB", "800Gb/s per node", "h100-2x400", "H100", 989, true},
    {"H100-80GB", "8x400Gb/s", "dgx-h100-ndr400", "H100", 989, true},
    {"H100-80GB", "8x50 GB/s", "dgx-h100-ndr400", "H100", 989, true},
    {"H100-80GB", "", "dgx-h100-ndr400", "H100", 989},
    {"H100-SXM-80GB", "", "dgx-h100-ndr400", "H100", 989},
    {"H100", "", "dgx-h100-ndr400", "H100", 989},
    {"H200-141GB", "8x400Gb/s", "hgx-h200-ndr400", "H200", 989, true},
    {"H200-141GB", "", "hgx-h200-ndr400", "H200", 989},
    {"H200-SXM-141GB", "400Gb/s RDMA per GPU", "hgx-h200-ndr400", "H200", 989, true},
    {"H200-SXM-141GB", "", "hgx-h200-ndr400", "H200", 989},
    {"H200", "", "hgx-h200-ndr400", "H200", 989},
    {"B200-SXM", "", "dgx-b200-ndr400", "B200"},
    {"B200", "", "dgx-b200-ndr400", "B200"},
    {"B300", "", "dgx-b300-xdr800", "B300"},
    // Whole domains of 72, else 64 GPUs of each: layouts of powers of two are placed so.
    {"GB200", "", "gb200-nvl72", "GB200", 2450, true, 72},
    {"GB200", "", "gb200-nvl72-64", "GB200", 2450, true},
    {"GB300", "", "gb300-nvl72", "GB300", 0, true, 72},
    {"GB300", "", "gb300-nvl72-64", "GB300", 0, true},
};

// Sizes that no column holds are those of the published config.json.
constexpr std::string_view kDeepSeekV3 =
    R"("q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
    R"("qk_rope_head_dim": 64, "v_head_dim": 128, )"
    R"("intermediate_size": 18432, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
    R"("first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "num_nextn_predict_layers": 1)";
constexpr std::string_view kDeepSeekV2 =
    R"("q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
    R"("qk_rope_head_dim": 64, "v_head_dim": 128, )"
    R"("intermediate_size": 12288, "moe_intermediate_size": 1536, "n_shared_experts": 2, )"
    R"("first_k_dense_replace": 1, "n_group": 8, "topk_group": 3)";

constexpr ModelSpelling kModels[] = {
    {"gpt-", "gpt2"},
    {"GPT-OSS", "mixtral", R"("head_dim": 64)", "attention over the whole sequence in every layer"},
    {"GPT-", "gpt2"},
    {"GPT2-", "gpt2"},
    {"GPT3-", "gpt2"},
    {"gpt3-", "gpt2"},
    {"MT-NLG", "gpt2"},
    {"mt-nlg", "gpt2"},
    {"opt-", "gpt2"},
    {"mpt-", "gpt2"},
    {"Nemotron", "nemotron"},
    {"Llama4", ""},  // dense and MoE layers in turn
    {"Llama3-8x70B", "mixtral"},
    {"Llama", "llama"},
    {"llama", "llama"},
    {"tinyllama", "llama"},
    {"internlm", "llama"},
    {"Grok-1", "mixtral"},
    {"Mixtral", "mixtral"},
    {"Qwen3-", "qwen3_moe", R"("head_dim": 128)"},
    {"DeepSeek-V3", "deepseek_v3", kDeepSeekV3},
    {"deepseek-v2", "deepseek_v2", kDeepSeekV2},
};

// Megatron-Bridge, performance recipes of DeepSeek-V3 for GB200 and H100.
constexpr PublishedCut kCuts[] = {
    {"DeepSeek-V3", 16, "Et*4|(t*4|)*14tmL"},
    {"DeepSeek-V3", 32, "Et|(tt|)*30mL"},
};

}  // namespace

std::span<const PublishedHardware> published_hardware() {
  return kHardware;
}
std::span<const ModelSpelling> model_spellings() {
  return kModels;
}
std::span<const PublishedCut> published_cuts() {
  return kCuts;
}

const PublishedHardware* hardware_of(const PublishedRow& row) {
  for (const PublishedHardware& hardware : kHardware) {
    if (row.gpu == hardware.gpu &&
        row.internode_bw_note.find(hardware.network) != std::string::npos &&
        row.gpus.value_or(1) % hardware.multiple_of == 0) {
      return &hardware;
    }
  }
  return nullptr;
}

const ModelSpelling* model_spelling_of(const PublishedRow& row) {
  for (const ModelSpelling& model : kModels) {
    if (row.model.starts_with(model.prefix)) {
      return &model;
    }
  }
  return nullptr;
}

}  // namespace foretrain
