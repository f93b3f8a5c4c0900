#include "sim/model/attention.h"

namespace foretrain {

/// Korthikanti et al. 2022, section 4.1: attention scores without a flash kernel are softmax output
/// and, with dropout, its mask and the dropped-out output.
void core_attention_stash(const BlockBuilder& builder,
                          bool inputs_again,
                          bool attention_again,
                          StashList& stash) {
  const BlockShape& shape = builder.shape();
  const std::int64_t element = shape.element;
  if (!inputs_again) {
    stash.add("query", shape.tokens * shape.query_width * element);
    stash.add("key", shape.tokens * shape.key_width * element);
    stash.add("value", shape.tokens * shape.value_width * element);
  }
  stash.add("attention output", shape.tokens * shape.output_width * element);
  if (attention_again)
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

}  // namespace foretrain
