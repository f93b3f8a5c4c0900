#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// Layers with routed experts: which operators, how many bytes and FLOPs, what is kept.
namespace foretrain {
namespace {

constexpr std::int64_t kS = 4096;

/// Mixtral 8x7B (h 4096, 8 experts of 14336, top-2), one sequence of 4,096 tokens.
BlockContext layout(std::int64_t tp, std::int64_t ep, std::int64_t etp) {
  BlockContext at;
  at.sequence_length = kS;
  at.tp = tp;
  at.ep = ep;
  at.etp = etp;
  return at;
}

BlockOperators mixtral(const BlockContext& at) {
  return block_operators(known::mixtral_8x7b(), BlockKind::kMoe, at);
}

std::vector<std::string> names(const std::vector<Operator>& operators) {
  std::vector<std::string> list;
  for (const Operator& op : operators)
    list.emplace_back(op.name);
  return list;
}

const Operator& find(const std::vector<Operator>& operators, std::string_view name) {
  const auto found = std::find_if(
      operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
  EXPECT_NE(found, operators.end()) << name;
  return found == operators.end() ? operators.front() : *found;
}

std::int64_t count_name(const std::vector<Operator>& operators, std::string_view name) {
  return std::count_if(
      operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
}

std::int64_t kept(const BlockOperators& block, std::string_view name) {
  for (const Stash& tensor : block.stash) {
    if (tensor.name == name)
      return tensor.bytes.value;
  }
  return 0;
}

// Rule: issue order of Megatron-Core's layer: router, counts to the host, copies sorted by expert,
// dispatch, rows of the other slices, sorted by local expert, two grouped GEMMs, and back.
TEST(Experts, ForwardOrder) {
  const BlockOperators block = mixtral(layout(2, 4, 2));
  const std::vector<std::string> list = names(block.forward);
  const std::vector<std::string> expected = {"norm 2",
                                             "router",
                                             "router top-k",
                                             "token counts",
                                             "permute",
                                             "ep dispatch",
                                             "etp all-gather",
                                             "sort by expert",
                                             "expert up",
                                             "expert swiglu",
                                             "expert down",
                                             "unsort by expert",
                                             "etp reduce-scatter",
                                             "ep combine",
                                             "unpermute",
                                             "residual add"};
  const auto from = std::find(list.begin(), list.end(), "norm 2");
  EXPECT_EQ(std::vector<std::string>(from, list.end()), expected);
}

// Rule: backward is the way back: the gradient of combine is sent as dispatch is, and the router's
// gradient follows the experts'.
TEST(Experts, BackwardOrder) {
  const BlockOperators block = mixtral(layout(2, 4, 2));
  const std::vector<std::string> list = names(block.backward);
  const std::vector<std::string> expected = {"unpermute gradient",
                                             "ep combine gradient",
                                             "etp all-gather",
                                             "unsort by expert gradient",
                                             "expert down input gradient",
                                             "expert down weight gradient",
                                             "expert swiglu gradient",
                                             "expert up input gradient",
                                             "expert up weight gradient",
                                             "sort by expert gradient",
                                             "etp reduce-scatter",
                                             "ep dispatch gradient",
                                             "permute gradient",
                                             "router top-k gradient",
                                             "router input gradient",
                                             "router weight gradient",
                                             "expert gradient sum",
                                             "norm 2 gradient"};
  ASSERT_GE(list.size(), expected.size());
  const auto end = list.begin() + static_cast<std::ptrdiff_t>(expected.size());
  EXPECT_EQ(std::vector<std::string>(list.begin(), end), expected);
}

// Rule: an all-to-all moves tokens x top-k x hidden x bytes, whatever ep; etp ranks exchange the
// rows of all of them.
TEST(Experts, Payloads) {
  for (const std::int64_t ep : {2, 4, 8}) {
    const BlockOperators block = mixtral(layout(2, ep, 2));
    const std::int64_t copies = kS / 2 * 2 * 4096 * 2;
    for (const auto& [list, name] : {std::pair(&block.forward, "ep dispatch"),
                                     std::pair(&block.forward, "ep combine"),
                                     std::pair(&block.backward, "ep dispatch gradient"),
                                     std::pair(&block.backward, "ep combine gradient")}) {
      const Operator& op = find(*list, name);
      EXPECT_EQ(op.payload.value, copies) << name;
      EXPECT_EQ(op.collective, CollectiveKind::kAllToAll);
      EXPECT_EQ(op.dimension, MeshDimension::kEp);
      EXPECT_EQ(op.copies, 2);
    }
    for (const char* name : {"etp all-gather", "etp reduce-scatter"}) {
      EXPECT_EQ(find(block.forward, name).payload.value, 2 * copies);
      EXPECT_EQ(find(block.forward, name).dimension, MeshDimension::kEtp);
      EXPECT_EQ(find(block.backward, name).payload.value, 2 * copies);
    }
  }
}

// Rule: a degree of one is the same as none: no exchange over it.
TEST(Experts, DegreeOneHasNoExchange) {
  const BlockOperators block = mixtral(layout(1, 1, 1));
  for (const auto* list : {&block.forward, &block.backward}) {
    for (const Operator& op : *list)
      EXPECT_NE(op.kind, OperatorKind::kCollective) << op.name;
  }
  EXPECT_EQ(count_name(block.forward, "sort by expert"), 0);
  EXPECT_EQ(count_name(mixtral(layout(1, 8, 1)).forward, "sort by expert"), 0);  // one expert each
}

// Rule: a rank multiplies the rows of its E / ep experts side by side: 2 T k etp 3 h f_e / etp
// FLOPs forward, the width cut by etp; weight gradients read and write the sums of all its experts.
TEST(Experts, GroupedGemms) {
  const BlockOperators block = mixtral(layout(1, 2, 4));
  const std::int64_t rows = kS * 2 * 4;
  const Operator& up = find(block.forward, "expert up");
  EXPECT_EQ(up.gemms, 4);
  EXPECT_EQ(up.m, rows / 4);
  EXPECT_EQ(up.n, 2 * 14336 / 4);
  EXPECT_EQ(up.k, 4096);
  EXPECT_EQ(up.flops.value, 2 * rows * up.n * up.k);
  EXPECT_EQ(up.bytes.value, 2 * (rows * (up.n + up.k) + 4 * up.n * up.k));
  const Operator& weight = find(block.backward, "expert down weight gradient");
  EXPECT_EQ(weight.m, 14336 / 4);
  EXPECT_EQ(weight.n, 4096);
  EXPECT_EQ(weight.k, rows / 4);
  const std::int64_t weights = 4 * 4096LL * 14336 / 4;
  EXPECT_EQ(weight.bytes.value, 2 * (rows * (14336 / 4 + 4096) + weights) + (2 * 4 - 2) * weights);
}

// Rule: the router multiplies the rank's own tokens by all experts.
TEST(Experts, RouterSeesTheRanksTokens) {
  const Operator router = find(mixtral(layout(4, 2, 1)).forward, "router");
  EXPECT_EQ(router.m, kS / 4);
  EXPECT_EQ(router.n, 8);
  EXPECT_EQ(router.k, 4096);
}

// Rule: a rank whose experts are twice as hot takes twice the rows: bytes exchanged, FLOPs and what
// is kept of them; its attention, router and shared experts do not change.
TEST(Experts, HotExperts) {
  BlockContext at = layout(1, 8, 1);
  const BlockOperators even = mixtral(at);
  at.expert_load = 2.0;
  const BlockOperators hot = mixtral(at);
  for (const char* name : {"ep dispatch", "ep combine"})
    EXPECT_EQ(find(hot.forward, name).payload.value, 2 * find(even.forward, name).payload.value);
  for (const char* name : {"expert up", "expert down"})
    EXPECT_EQ(find(hot.forward, name).flops.value, 2 * find(even.forward, name).flops.value);
  for (const char* name : {"expert input", "expert up output", "expert activation output"})
    EXPECT_EQ(kept(hot, name), 2 * kept(even, name));
  for (const char* name : {"qkv", "attention", "router"})
    EXPECT_EQ(find(hot.forward, name).flops.value, find(even.forward, name).flops.value);
  EXPECT_EQ(kept(hot, "router logits"), kept(even, "router logits"));
}

// Rule: with a capacity factor f every expert takes ceil(f T k / E) rows from each rank, however
// hot it is, and the host need not wait for counts. 1.25 * 4096 * 2 / 8 = 1280.
TEST(Experts, Capacity) {
  BlockContext at = layout(1, 8, 1);
  at.expert_capacity = 1.25;
  at.expert_load = 3.0;
  const BlockOperators block = mixtral(at);
  EXPECT_EQ(find(block.forward, "ep dispatch").payload.value, 8 * 1280LL * 4096 * 2);
  EXPECT_EQ(find(block.forward, "expert up").m, 8 * 1280);
  EXPECT_EQ(count_name(block.forward, "token counts"), 0);
  at.expert_capacity = 1.0001;  // 1024.1 rows
  EXPECT_EQ(find(mixtral(at).forward, "expert up").m, 8 * 1025);
}

// Rule: without a capacity the host waits once in each forward, and again in a recomputed one.
TEST(Experts, HostWaitsForTokenCounts) {
  BlockContext at = layout(1, 8, 1);
  EXPECT_EQ(count_name(mixtral(at).forward, "token counts"), 1);
  EXPECT_EQ(count_name(mixtral(at).backward, "token counts"), 0);
  EXPECT_EQ(find(mixtral(at).forward, "token counts").kind, OperatorKind::kHostSync);
  at.recompute = RecomputeMode::kFull;
  EXPECT_EQ(count_name(mixtral(at).backward, "token counts"), 1);
}

// Rule: an all-gather dispatcher shows every rank all tokens of the ep (and etp) ranks and sums
// whole token buffers on the way back: s b h bytes a rank, not top-k times that.
TEST(Experts, AllGatherDispatcher) {
  BlockContext at = layout(1, 4, 2);
  at.dispatcher = "allgather";
  const BlockOperators block = mixtral(at);
  const std::int64_t all = 4 * kS * 4096 * 2;
  const Operator& dispatch = find(block.forward, "ep dispatch");
  EXPECT_EQ(dispatch.collective, CollectiveKind::kAllGather);
  EXPECT_EQ(dispatch.payload.value, all);
  const Operator& combine = find(block.forward, "ep combine");
  EXPECT_EQ(combine.collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(combine.payload.value, all);
  EXPECT_EQ(find(block.forward, "etp all-gather").payload.value, 2 * all);
  EXPECT_EQ(count_name(block.forward, "permute"), 0);
}

// Rule: a dispatcher that forwards sends tokens as they are and sorts copies once, after it.
TEST(Experts, ForwardingDispatcherSortsOnce) {
  BlockContext at = layout(1, 4, 1);
  at.dispatcher = "deepep";
  const BlockOperators block = mixtral(at);
  EXPECT_EQ(count_name(block.forward, "permute"), 0);
  EXPECT_EQ(count_name(block.forward, "sort by expert"), 1);
  EXPECT_EQ(find(block.forward, "ep dispatch").copies, 2);
}

// Rule: DeepSeek-V3's shared expert is an MLP of its own, cut over tp with its own gather and
// scatter, and added to what is combined.
TEST(Experts, SharedExperts) {
  const BlockOperators block =
      block_operators(known::deepseek_v3(), BlockKind::kMoe, layout(2, 8, 1));
  EXPECT_EQ(find(block.forward, "shared expert up").n, 2 * 2048 / 2);
  EXPECT_EQ(find(block.forward, "shared expert up").m, kS);
  const std::vector<std::string> list = names(block.forward);
  const auto up = std::find(list.begin(), list.end(), "shared expert up");
  EXPECT_EQ(*(up - 1), "tp all-gather");
  EXPECT_EQ(*(up + 3), "tp reduce-scatter");
  EXPECT_EQ(count_name(block.forward, "shared expert add"), 1);
  EXPECT_EQ(kept(block, "shared expert up output"), kS * 2048 / 2 * 2);
  EXPECT_EQ(count_name(mixtral(layout(2, 8, 1)).forward, "shared expert up"), 0);
}

// Rule: what a Mixtral layer keeps, by hand. Attention as in a dense layer: norm inputs 4, norm
// outputs 4, q 2, k and v 2 * 2 / 4, output 2 (units of s b h) and 4 a s of statistics. Experts: T
// k rows of h and of gate, up and their product, 4 bytes of routing weight a row, logits and
// probabilities 4 bytes each per expert.
TEST(Experts, StashOfAMixtralLayer) {
  const std::int64_t rows = kS * 2;
  EXPECT_EQ(stash_bytes(mixtral(layout(1, 8, 1))).value,
            (4 + 4 + 2 + 1 + 2) * kS * 4096 + 4 * 32 * kS + 2 * rows * (4096 + 3 * 14336) +
                4 * rows + 2 * 4 * kS * 8);
}

// Rule: a mixture's layer is not a dense one of any width taken from its config: top-k copies and
// k f_e columns count, so Qwen3-30B-A3B (8 of 128 experts of 768) keeps 8 * 768 = 6144 columns a
// token as a dense layer of 6144 would, and 8 copies of the hidden state beside them.
TEST(Experts, StashDiffersFromADenseLayers) {
  BlockContext at = layout(1, 8, 1);
  const ModelConfig model = known::qwen3_30b_a3b();
  const std::int64_t moe = stash_bytes(block_operators(model, BlockKind::kMoe, at)).value;
  const std::int64_t dense = stash_bytes(block_operators(model, BlockKind::kDense, at)).value;
  EXPECT_EQ(moe - dense, 2 * 8 * kS * 2048 + 4 * 8 * kS + 2 * 4 * kS * 128);
}

std::vector<std::string> recomputed(const BlockOperators& block) {
  std::vector<std::string> list;
  for (const Operator& op : block.backward) {
    if (op.pass == Pass::kRecompute)
      list.emplace_back(op.name);
  }
  return list;
}

BlockOperators deepseek(const std::vector<std::string>& modules, BlockKind kind = BlockKind::kMoe) {
  BlockContext at = layout(2, 8, 1);
  if (!modules.empty()) {
    at.recompute = RecomputeMode::kModules;
    at.recompute_modules = modules;
  }
  return block_operators(known::deepseek_v3(), kind, at);
}

// Rule: "moe" does the whole layer's MLP again, exchanges and the host's wait included, and keeps
// its input alone.
TEST(Experts, RecomputedLayer) {
  const BlockOperators block = deepseek({"moe"});
  const std::vector<std::string> forward = names(block.forward);
  const auto from = std::find(forward.begin(), forward.end(), "norm 2") + 1;
  EXPECT_EQ(recomputed(block), std::vector<std::string>(from, forward.end() - 1));
  EXPECT_EQ(count_name(block.backward, "ep dispatch"), 1);
  EXPECT_EQ(count_name(block.backward, "token counts"), 1);
  const std::int64_t rows = kS / 2 * 8;
  EXPECT_EQ(stash_bytes(deepseek({})).value - stash_bytes(block).value,
            2 * rows * (7168 + 3 * 2048) + 4 * rows + 2 * 4 * kS / 2 * 256 + 2 * 3 * kS * 2048 / 2);
}

// Rule: "moe_act" makes the experts' activation again before it is needed and frees its output.
TEST(Experts, RecomputedActivation) {
  const BlockOperators block = deepseek({"moe_act"});
  EXPECT_EQ(recomputed(block), std::vector<std::string>{"expert swiglu"});
  const std::vector<std::string> list = names(block.backward);
  const auto again = std::find(list.begin(), list.end(), "expert swiglu");
  EXPECT_EQ(*(again + 1), "expert down input gradient");
  EXPECT_EQ(stash_bytes(deepseek({})).value - stash_bytes(block).value, 2 * (kS / 2 * 8) * 2048);
}

// Rule: "shared_experts" does the shared experts again, with their exchanges.
TEST(Experts, RecomputedSharedExperts) {
  const BlockOperators block = deepseek({"shared_experts"});
  EXPECT_EQ(recomputed(block),
            (std::vector<std::string>{"tp all-gather",
                                      "shared expert up",
                                      "shared expert swiglu",
                                      "shared expert down",
                                      "tp reduce-scatter"}));
  EXPECT_EQ(stash_bytes(deepseek({})).value - stash_bytes(block).value, 2 * 3 * kS * 2048 / 2);
}

// Rule: a module is done again once, also where it is part of another; what a layer lacks is
// nothing to do.
TEST(Experts, RecomputedModulesDoNotAddUp) {
  EXPECT_EQ(recomputed(deepseek({"moe", "moe_act", "shared_experts"})),
            recomputed(deepseek({"moe"})));
  EXPECT_TRUE(recomputed(deepseek({"mlp"})).empty());
  EXPECT_TRUE(
      recomputed(deepseek({"moe", "moe_act", "shared_experts"}, BlockKind::kDense)).empty());
  BlockContext at = layout(1, 8, 1);
  at.recompute = RecomputeMode::kModules;
  at.recompute_modules = {"mla_up_proj", "shared_experts"};
  EXPECT_TRUE(recomputed(mixtral(at)).empty());
}

// Rule: selective recomputation is the core attention's, also where experts follow; full keeps the
// block's input.
TEST(Experts, SelectiveAndFullRecomputation) {
  BlockContext at = layout(2, 8, 1);
  at.recompute = RecomputeMode::kSelective;
  EXPECT_EQ(recomputed(mixtral(at)), std::vector<std::string>{"attention"});
  at.recompute = RecomputeMode::kFull;
  EXPECT_EQ(recomputed(mixtral(at)), names(mixtral(at).forward));
  EXPECT_EQ(stash_bytes(mixtral(at)).value, 2 * kS / 2 * 4096);
}

// Rule: copies are read and written once by each move; unpermuting sums k of them into a token. The
// normed hidden state has three readers with shared experts, two without: as many gradients less
// one are added. Eager code multiplies by the routing weight in passes of its own: 2 forward, 3
// backward.
TEST(Experts, MemoryTraffic) {
  BlockContext at = layout(1, 4, 1);
  const BlockOperators fused = mixtral(at);
  const std::int64_t tokens = kS * 4096 * 2;
  const auto bytes = [](const std::vector<Operator>& list, const char* name) {
    return find(list, name).bytes.value;
  };
  EXPECT_EQ(bytes(fused.forward, "permute"), 2 * 2 * tokens);
  EXPECT_EQ(bytes(fused.forward, "sort by expert"), 2 * 2 * tokens);
  EXPECT_EQ(bytes(fused.forward, "unsort by expert"), 2 * 2 * tokens);
  EXPECT_EQ(bytes(fused.forward, "unpermute"), (2 + 1) * tokens);
  EXPECT_EQ(bytes(fused.backward, "permute gradient"), (2 + 1) * tokens);
  EXPECT_EQ(bytes(fused.backward, "expert gradient sum"), 3 * tokens);
  const std::int64_t width = 2 * kS * 14336 * 2;
  EXPECT_EQ(bytes(fused.forward, "expert swiglu"), 3 * width);
  EXPECT_EQ(bytes(deepseek({}).backward, "expert gradient sum"), 6 * kS / 2 * 7168 * 2);
  at.fused_operators = false;
  const BlockOperators eager = mixtral(at);
  EXPECT_EQ(bytes(eager.forward, "expert swiglu"), (5 + 2) * width);
  EXPECT_EQ(bytes(eager.backward, "expert swiglu gradient"), (9 + 3) * width);
}

}  // namespace
}  // namespace foretrain
