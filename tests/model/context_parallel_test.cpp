#include "tests/model/known_models.h"

#include "foretrain/model.h"
#include "sim/model/attention_pairs.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// The core attention over context-parallel ranks: Llama 3 405B (16,384 wide, 128 heads, 8 key/value
// heads of 128) on tp 8.
namespace foretrain {
namespace {

constexpr std::int64_t kS = 131072;

BlockContext layout(std::int64_t cp, ContextKind kind) {
  BlockContext at;
  at.sequence_length = kS;
  at.tp = 8;
  at.cp = cp;
  at.cp_kind = kind;
  return at;
}

BlockOperators llama(const BlockContext& at) {
  return block_operators(known::llama3_405b(), BlockKind::kDense, at);
}

std::vector<std::size_t> places(const std::vector<Operator>& operators, std::string_view name) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].name == name)
      at.push_back(i);
  }
  return at;
}

bool waits(const Operator& op, std::size_t input) {
  return std::count(op.inputs.begin(), op.inputs.end(), static_cast<std::int32_t>(input)) == 1;
}

/// Twice the causal pairs of a chunk's queries, pair by pair: two for a key before the query, one
/// for the query itself.
std::int64_t counted(std::int64_t first, std::int64_t last, std::int64_t document) {
  std::int64_t pairs = 0;
  for (std::int64_t query = first; query < last; ++query) {
    for (std::int64_t key = 0; key <= query; ++key) {
      const bool together = document == 0 || key / document == query / document;
      pairs += together ? (key < query ? 2 : 1) : 0;
    }
  }
  return pairs;
}

// Rule: zig-zag halves give every rank s^2 / cp of the causal square; with documents the hottest
// rank counts, whatever their length, the last one shorter.
TEST(ContextParallel, PairsOfTheHottestRank) {
  for (const std::int64_t cp : {1, 2, 3, 4}) {
    const std::int64_t s = 48 * cp;
    for (const std::int64_t document : {0, 1, 7, 24, 40, 100, 1000}) {
      std::int64_t most = 0;
      std::int64_t sum = 0;
      for (std::int64_t rank = 0; rank < cp; ++rank) {
        const std::int64_t other = 2 * cp - 1 - rank;
        const std::int64_t pairs = counted(24 * rank, 24 * rank + 24, document) +
                                   counted(24 * other, 24 * other + 24, document);
        most = std::max(most, pairs);
        sum += pairs;
      }
      EXPECT_EQ(twice_pairs_of_hottest(s, {0, document}, cp), most) << cp << " " << document;
      EXPECT_EQ(twice_pairs_before(s, {0, document}), sum) << cp << " " << document;
      if (document == 0) {
        EXPECT_EQ(most * cp, s * s);
      }
    }
  }
}

// Rule: a document as long as the sequence is no bound; n documents leave 1 / n of the pairs.
TEST(ContextParallel, Documents) {
  BlockContext at = layout(1, ContextKind::kRing);
  const auto attention = [&] {
    const std::vector<Operator> forward = llama(at).forward;
    return forward[places(forward, "attention").front()].flops.value;
  };
  const std::int64_t whole = attention();
  at.document_length = kS;
  EXPECT_EQ(attention(), whole);
  at.document_length = kS / 16;
  EXPECT_EQ(attention(), whole / 16);
  // A kernel works on runs of a document's tokens, however long the sequence.
  for (const ContextKind kind :
       {ContextKind::kRing, ContextKind::kAllGather, ContextKind::kUlysses}) {
    at.cp_kind = kind;
    for (const std::int64_t cp : {1, 4}) {
      at.cp = cp;
      const std::vector<Operator> forward = llama(at).forward;
      EXPECT_EQ(forward[places(forward, "attention").front()].m, kS / 16);
    }
  }
}

// Rule: cp steps of equal FLOPs and cp - 1 messages of a rank's keys and values, on their way
// beside the kernels: message i waits for message i - 1 alone, step i for step i - 1 and message i
// - 1.
TEST(ContextParallel, RingForward) {
  for (const std::int64_t cp : {2, 4, 16}) {
    const std::vector<Operator> forward = llama(layout(cp, ContextKind::kRing)).forward;
    const std::vector<std::size_t> steps = places(forward, "attention");
    const std::vector<std::size_t> messages = places(forward, "cp ring pass");
    ASSERT_EQ(static_cast<std::int64_t>(steps.size()), cp);
    ASSERT_EQ(static_cast<std::int64_t>(messages.size()), cp - 1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(forward[steps[i]].flops.value, 2LL * 2048 * kS * (kS / cp) / cp);
      EXPECT_EQ(forward[steps[i]].m, kS / cp);
      EXPECT_EQ(forward[steps[i]].inputs.size(), i == 0 ? 1U : 2U);
      if (i > 0) {
        EXPECT_TRUE(waits(forward[steps[i]], steps[i - 1]));
        EXPECT_TRUE(waits(forward[steps[i]], messages[i - 1]));
      }
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Operator& message = forward[messages[i]];
      EXPECT_TRUE(message.detached);
      EXPECT_EQ(message.collective, CollectiveKind::kSendReceive);
      EXPECT_EQ(message.dimension, MeshDimension::kCp);
      EXPECT_EQ(message.payload.value, kS / cp * 2 * 128 * 2);
      ASSERT_EQ(message.inputs.size(), 1U);
      EXPECT_TRUE(waits(message, i == 0 ? places(forward, "rotary").front() : messages[i - 1]));
      EXPECT_LT(messages[i], steps[i]);  // issued before the step it runs beside
    }
  }
}

// Rule: backward, keys and values pass cp - 1 times and their gradients cp - 1 times, a step
// behind: the first message holds keys and values only, the last gradients only.
TEST(ContextParallel, RingBackward) {
  for (const std::int64_t cp : {2, 4, 16}) {
    const std::vector<Operator> backward = llama(layout(cp, ContextKind::kRing)).backward;
    const std::vector<std::size_t> steps = places(backward, "attention gradient");
    const std::vector<std::size_t> sums = places(backward, "cp gradient sum");
    const std::vector<std::size_t> messages = places(backward, "cp ring pass");
    ASSERT_EQ(static_cast<std::int64_t>(steps.size()), cp);
    ASSERT_EQ(static_cast<std::int64_t>(messages.size()), cp);
    ASSERT_EQ(static_cast<std::int64_t>(sums.size()), cp - 1);
    const std::int64_t tensor = kS / cp * 2 * 128 * 2;
    std::int64_t moved = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool end = i == 0 || i + 1 == messages.size();
      EXPECT_EQ(backward[messages[i]].payload.value, (end ? 1 : 2) * tensor);
      EXPECT_TRUE(backward[messages[i]].detached);
      moved += backward[messages[i]].payload.value;
      if (i > 0) {
        EXPECT_TRUE(waits(backward[steps[i]], messages[i - 1]));
        EXPECT_TRUE(waits(backward[messages[i]], i == 1 ? steps[0] : sums[i - 2]));
        EXPECT_TRUE(waits(backward[sums[i - 1]], messages[i]));
      }
    }
    EXPECT_EQ(moved, 2 * (cp - 1) * tensor);
  }
}

// Rule: without overlap messages and steps take turns: each waits for the one before.
TEST(ContextParallel, RingInTurns) {
  BlockContext at = layout(4, ContextKind::kRing);
  at.overlap_cp = false;
  const BlockOperators block = llama(at);
  for (const auto* list : {&block.forward, &block.backward}) {
    for (const std::size_t message : places(*list, "cp ring pass")) {
      EXPECT_FALSE((*list)[message].detached);
      ASSERT_EQ((*list)[message].inputs.size(), 1U);
      const Operator& before = (*list)[static_cast<std::size_t>((*list)[message].inputs[0])];
      EXPECT_NE(before.kind, OperatorKind::kCollective);
      EXPECT_NE(before.pass, Pass::kWeightGradient);
      EXPECT_TRUE(waits((*list)[message + 1], message));
    }
  }
  EXPECT_EQ(places(block.forward, "cp ring pass").size(), 3U);
  EXPECT_EQ(places(block.backward, "cp ring pass").size(), 4U);
}

// Rule: Llama 3's way: keys and values of whole sequences are gathered before attention, again in
// backward, and their gradients scattered; the rank's share of the causal square in one kernel.
TEST(ContextParallel, AllGather) {
  const BlockOperators block = llama(layout(16, ContextKind::kAllGather));
  const std::int64_t whole = kS * 2 * 128 * 2;
  const Operator& gather = block.forward[places(block.forward, "cp all-gather").at(0)];
  EXPECT_EQ(gather.payload.value, whole);
  EXPECT_FALSE(gather.detached);
  EXPECT_EQ(block.backward[places(block.backward, "cp all-gather").at(0)].payload.value, whole);
  EXPECT_EQ(block.backward[places(block.backward, "cp reduce-scatter").at(0)].payload.value, whole);
  const Operator& attention = block.forward[places(block.forward, "attention").at(0)];
  EXPECT_EQ(attention.flops.value, 2LL * 2048 * kS * (kS / 16));
  EXPECT_EQ(attention.m, kS);
}

// Rule: Ulysses exchanges queries, keys, values and the output, and the same for gradients; a rank
// then holds heads / (tp cp) heads of whole sequences. One key/value head on a tp rank is copied to
// all 4 ranks.
TEST(ContextParallel, Ulysses) {
  const BlockOperators block = llama(layout(4, ContextKind::kUlysses));
  const std::int64_t tokens = kS / 4;
  const std::int64_t inputs = tokens * (2048 + 2 * 4 * 128) * 2;
  const std::int64_t output = tokens * 2048 * 2;
  const auto payloads = [](const std::vector<Operator>& list) {
    std::vector<std::int64_t> bytes;
    for (const std::size_t i : places(list, "cp all-to-all"))
      bytes.push_back(list[i].payload.value);
    return bytes;
  };
  EXPECT_EQ(payloads(block.forward), (std::vector<std::int64_t>{inputs, output}));
  EXPECT_EQ(payloads(block.backward), (std::vector<std::int64_t>{output, inputs}));
  const Operator& attention = block.forward[places(block.forward, "attention").at(0)];
  EXPECT_EQ(attention.n, 16 / 4);
  EXPECT_EQ(attention.m, kS);
  EXPECT_EQ(attention.flops.value, 2LL * 2048 / 4 * kS * kS);
}

// Rule: with as many key/value heads as ranks nothing is copied.
TEST(ContextParallel, UlyssesWithoutCopies) {
  BlockContext at = layout(4, ContextKind::kUlysses);
  at.tp = 2;
  const std::vector<Operator> forward = llama(at).forward;
  EXPECT_EQ(forward[places(forward, "cp all-to-all").at(0)].payload.value,
            kS / 4 * (8192 + 2 * 4 * 128) * 2);
}

// Rule: tokens on a rank decide what is kept: (32k, cp 1), (64k, 2), (128k, 4), (256k, 8) are flat,
// as measured on 8 GPUs, and so is what passes between stages.
TEST(ContextParallel, MemoryIsFlatAlongTheLadder) {
  const ModelConfig model = known::llama3_8b();
  for (const ContextKind kind : {ContextKind::kRing, ContextKind::kAllGather}) {
    std::vector<std::int64_t> kept;
    for (const std::int64_t cp : {1, 2, 4, 8}) {
      BlockContext at;
      at.sequence_length = 32768 * cp;
      at.cp = cp;
      at.cp_kind = kind;
      std::int64_t sum = boundary_bytes(model, at).value;
      for (const BlockKind block : {BlockKind::kEmbedding, BlockKind::kDense, BlockKind::kHead}) {
        const BlockOperators operators = block_operators(model, block, at);
        sum += stash_bytes(operators).value + operators.logits.value;
      }
      kept.push_back(sum);
    }
    EXPECT_EQ(kept, std::vector<std::int64_t>(4, kept.front()));
  }
}

// Rule: recomputed attention exchanges again.
TEST(ContextParallel, RecomputedAttentionPassesAgain) {
  BlockContext at = layout(4, ContextKind::kRing);
  at.recompute = RecomputeMode::kSelective;
  const std::vector<Operator> backward = llama(at).backward;
  EXPECT_EQ(places(backward, "cp ring pass").size(), 3U + 4U);
  EXPECT_EQ(places(backward, "attention").size(), 4U);
}

// Rule: each kernel moves its operands once: a ring step the rank's queries, output and one rank's
// keys and values, a gathered one the keys and values of the whole sequence. Outputs and gradients
// of later steps are added: three passes each.
TEST(ContextParallel, MemoryTraffic) {
  const std::int64_t tokens = kS / 16;
  const std::int64_t statistics = 4 * 16 * tokens;
  const BlockOperators ring = llama(layout(16, ContextKind::kRing));
  const auto bytes = [](const std::vector<Operator>& list, std::string_view name) {
    return list[places(list, name).at(0)].bytes.value;
  };
  EXPECT_EQ(bytes(ring.forward, "attention"), 2 * tokens * (2 * 2048 + 2 * 128) + statistics);
  EXPECT_EQ(bytes(ring.forward, "cp output sum"), 2 * 3 * 15 * tokens * 2048);
  EXPECT_EQ(bytes(ring.backward, "cp gradient sum"), 2 * 3 * tokens * (2048 + 2 * 128));
  const BlockOperators gathered = llama(layout(16, ContextKind::kAllGather));
  EXPECT_EQ(bytes(gathered.forward, "attention"),
            2 * (tokens * 2 * 2048 + kS * 2 * 128) + statistics);
}

// Rule: the steps of a ring add up to the rank's attention, also where documents leave a number of
// pairs that cp does not divide.
TEST(ContextParallel, StepsAddUp) {
  BlockContext at = layout(4, ContextKind::kRing);
  at.sequence_length = 8 * 25;
  at.document_length = 37;
  const std::vector<Operator> forward = llama(at).forward;
  std::int64_t flops = 0;
  for (const std::size_t step : places(forward, "attention"))
    flops += forward[step].flops.value;
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    most = std::max(most,
                    counted(25 * rank, 25 * rank + 25, 37) +
                        counted(25 * (7 - rank), 25 * (7 - rank) + 25, 37));
  }
  EXPECT_EQ(flops, 2 * 2048 * most);
}

}  // namespace
}  // namespace foretrain
