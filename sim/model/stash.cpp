#include "sim/model/dense_block.h"

namespace foretrain {

namespace {

class StashList {
 public:
  void add(std::string_view name, std::int64_t bytes) {
    if (bytes > 0)
      list_.push_back({name, Bytes{bytes}});
  }
  std::vector<Stash> take() { return std::move(list_); }

 private:
  std::vector<Stash> list_;
};

/// Korthikanti et al. 2022, section 4.1: attention scores without a flash kernel are softmax output
/// and, with dropout, its mask and the dropped-out output.
void add_attention(StashList& stash, const BlockShape& shape, bool recomputed) {
  const std::int64_t element = shape.element;
  stash.add("query", shape.tokens * shape.query_width * element);
  stash.add("key", shape.tokens * shape.kv_width * element);
  stash.add("value", shape.tokens * shape.kv_width * element);
  stash.add("attention output", shape.tokens * shape.query_width * element);
  if (recomputed)
    return;
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

void add_mlp(StashList& stash, const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const std::int64_t width = shape.tokens * shape.ffn * shape.element;
  if (builder.model().gated_mlp) {
    stash.add("gate output", width);
    stash.add("up output", width);
    if (!shape.fused)
      stash.add("silu output", width);
  } else {
    stash.add("up output", width);
  }
  stash.add("activation output", width);
}

}  // namespace

std::vector<Stash> dense_stash(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const Recomputation again = recomputation(builder.context());
  const std::int64_t hidden_state = shape.split() * shape.element;
  const std::int64_t mask = shape.dropout ? shape.split() : 0;
  StashList stash;
  if (again.block) {
    stash.add("block input", hidden_state);
    return stash.take();
  }
  stash.add("norm 1 input", hidden_state);
  stash.add("qkv input", again.norms ? 0 : hidden_state);
  add_attention(stash, shape, again.attention);
  if (builder.model().qk_norm) {
    stash.add("query key norm input",
              shape.tokens * (shape.query_width + shape.kv_width) * shape.element);
  }
  stash.add("attention dropout mask", mask);
  stash.add("norm 2 input", hidden_state);
  stash.add("mlp input", again.norms ? 0 : hidden_state);
  if (!again.mlp)
    add_mlp(stash, builder);
  stash.add("mlp dropout mask", mask);
  return stash.take();
}

}  // namespace foretrain
