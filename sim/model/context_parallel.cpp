#include "sim/model/attention.h"

namespace foretrain {

void core_attention(BlockBuilder& builder) {
  attention_kernel(builder, AttentionKernel(builder.shape()));
}

void core_attention_gradients(BlockBuilder& builder) {
  attention_kernel_gradient(builder, AttentionKernel(builder.shape()));
}

}  // namespace foretrain
