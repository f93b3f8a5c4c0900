#include "sim/scenario/sections.h"

#include <array>

namespace foretrain {
namespace {

/// A row of the table of stacks; the columns are those of StackSpec.
struct StackRow {
  std::string_view name;
  std::string_view family;
  int year;
  std::string_view attention_kernel;
  bool fused_operators;
  bool cuda_graphs;
  bool fused_gradient_accumulation;
  std::string_view gradient_reduction;
  std::int64_t host_launch_us;
  std::int64_t host_sync_us;
};

// Attention: FlashAttention appeared in mid-2022 and reached Megatron-LM and DeepSpeed in 2023, its
// second version in the year after. Transformer Engine takes cuDNN's kernel on Hopper from 2024 on.
// Megatron's own kernels fused scale, mask and softmax before.
// Gradient accumulation inside the weight-gradient GEMM came with Korthikanti et al., 2022.
// FSDP2 and DeepSpeed reduce gradients after every micro-batch; Megatron once per run of a chunk.
// A kernel launch from Python takes some 5 us of host time, 4 us from a compiled graph. An operator
// of Megatron-DeepSpeed in 2021 stood for several eager kernels with autograd around each: some 80
// us of host time, the floor under vTrain's 840 steps inside one node (arXiv 2312.12391).
// Token counts of dropless experts: a copy to the host, a drained stream and the first launches
// after it.
constexpr std::array kStacks = {
    StackRow{"textbook", "textbook", 2024, "flash-2", true, false, true, "run", 0, 0},
    StackRow{"megatron-2021", "megatron", 2021, "unfused", true, false, false, "run", 5, 50},
    StackRow{"megatron-2022", "megatron", 2022, "unfused", true, false, true, "run", 5, 50},
    StackRow{"megatron-2023", "megatron", 2023, "flash-1", true, false, true, "run", 5, 50},
    StackRow{"megatron-2024", "megatron", 2024, "cudnn", true, false, true, "run", 5, 50},
    StackRow{"megatron-2025", "megatron", 2025, "cudnn", true, false, true, "run", 5, 50},
    StackRow{"deepspeed-2021",
             "deepspeed",
             2021,
             "unfused",
             false,
             false,
             false,
             "micro_batch",
             80,
             100},
    StackRow{
        "deepspeed-2023", "deepspeed", 2023, "flash-1", false, false, false, "micro_batch", 6, 100},
    StackRow{
        "torchtitan-2024", "torchtitan", 2024, "flash-2", true, false, false, "micro_batch", 4, 50},
    StackRow{
        "torchtitan-2025", "torchtitan", 2025, "cudnn", true, false, false, "micro_batch", 4, 50},
};

}  // namespace

std::optional<StackSpec> stack_preset(const std::string& name) {
  for (const StackRow& row : kStacks) {
    if (row.name == name) {
      StackSpec stack;
      stack.name = row.name;
      stack.family = row.family;
      stack.year = row.year;
      stack.attention_kernel = row.attention_kernel;
      stack.fused_operators = row.fused_operators;
      stack.cuda_graphs = row.cuda_graphs;
      stack.fused_gradient_accumulation = row.fused_gradient_accumulation;
      stack.gradient_reduction = row.gradient_reduction;
      stack.host_launch = std::chrono::microseconds(row.host_launch_us);
      stack.host_sync = std::chrono::microseconds(row.host_sync_us);
      return stack;
    }
  }
  return std::nullopt;
}

std::vector<std::string> stack_presets() {
  std::vector<std::string> names;
  for (const StackRow& row : kStacks) {
    names.emplace_back(row.name);
  }
  return names;
}

void read_stack(JsonCursor& section, StackSpec& stack) {
  constexpr std::string_view kStackFamilies[] = {"megatron", "torchtitan", "deepspeed", "textbook"};
  constexpr std::string_view kKernels[] = {"unfused", "flash-1", "flash-2", "flash-3", "cudnn"};
  constexpr std::string_view kReductions[] = {"run", "micro_batch"};
  constexpr std::string_view kDispatchers[] = {"alltoall", "allgather", "flex", "deepep"};
  const std::vector<std::string> names = stack_presets();
  const std::vector<std::string_view> words(names.begin(), names.end());
  if (section.is_string()) {
    stack = stack_preset(section.choice(words).value_or("")).value_or(stack);
    return;
  }
  if (!section.is_object()) {
    section.fault("must be a stack's name or an object", "e.g. \"megatron-2024\"");
    return;
  }
  std::string name = "megatron-2024";
  section.read("name", name, words);
  stack = stack_preset(name).value_or(stack);
  section.read("family", stack.family, kStackFamilies);
  section.read("year", stack.year, {2018, 2100});
  section.read("attention_kernel", stack.attention_kernel, kKernels);
  section.read("fused_operators", stack.fused_operators);
  section.read("cuda_graphs", stack.cuda_graphs);
  section.read("fused_gradient_accumulation", stack.fused_gradient_accumulation);
  section.read("gradient_reduction", stack.gradient_reduction, kReductions);
  section.read("dispatcher", stack.dispatcher, kDispatchers);
  section.read("expert_capacity", stack.expert_capacity, {0.0, 1000.0});
  section.read("host_launch", stack.host_launch);
  section.read("communication_sm_share", stack.communication_sm_share, {0.0, 0.9});
  section.read("host_sync", stack.host_sync);
  section.finish();
}

}  // namespace foretrain
