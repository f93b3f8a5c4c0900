#pragma once

#include "tests/support/small_experts.h"

#include "foretrain/schedule.h"

#include <algorithm>
#include <string>
#include <vector>

/// A pipeline whose phases take stated times, and the sizes at which each schedule can be tried.
namespace foretrain::test {

struct PipelineSize {
  std::int64_t pp = 4, micro_batches = 8, vpp = 1, slices = 1;
};

/// Sizes near the edge of what a schedule takes, small enough to run in a moment.
inline std::vector<PipelineSize> sizes_of(const ScheduleEntry& entry) {
  std::vector<PipelineSize> sizes;
  for (const PipelineSize& size : {PipelineSize{1, 2},
                                   PipelineSize{2, 4},
                                   PipelineSize{2, 6},
                                   PipelineSize{3, 2},
                                   PipelineSize{3, 9},
                                   PipelineSize{4, 8},
                                   PipelineSize{6, 14},
                                   PipelineSize{8, 32}}) {
    PipelineSize own = size;
    own.vpp = entry.chunks == 0 ? 3 : entry.chunks;
    own.slices = entry.uses_slices ? 2 : 1;
    ScheduleSize asked;
    asked.pp = static_cast<std::int32_t>(own.pp);
    asked.micro_batches = static_cast<std::int32_t>(own.micro_batches);
    asked.vpp = static_cast<std::int32_t>(own.vpp);
    asked.slices = static_cast<std::int32_t>(own.slices);
    if (entry.illegal == nullptr || !entry.illegal(asked)) {
      sizes.push_back(own);
    }
  }
  return sizes;
}

inline std::string entry_name(const testing::TestParamInfo<ScheduleEntry>& tested) {
  std::string name(tested.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// A dense model of two layers a chunk, one pipeline, nothing sharded. `costs`: JSON.
inline std::string pipeline_text(const std::string& schedule,
                                 const PipelineSize& size,
                                 const std::string& costs,
                                 const std::string& keys = "") {
  const auto n = [](std::int64_t value) { return std::to_string(value); };
  return R"({"name": "pipeline", "model": {"model_type": "llama", "hidden_size": 512,
    "num_hidden_layers": )" +
         n(2 * size.pp * size.vpp) + R"(, "vocab_size": 1024, "num_attention_heads": 8,
    "num_key_value_heads": 8, "intermediate_size": 2048, "tie_word_embeddings": false},
    "cluster": {"topology": "dgx-h100-ndr400", "gpus": )" +
         n(size.pp) + R"(}, "training": {"sequence_length": 512, "global_batch_size": )" +
         n(size.micro_batches) + R"(}, "parallelism": {"pp": )" + n(size.pp) + R"(, "vpp": )" +
         n(size.vpp) + R"(, "sharding": "none"}, "schedule": {"name": ")" + schedule +
         R"(", "slices": )" + n(size.slices) + keys + R"(}, "costs": )" + costs + "}";
}

}  // namespace foretrain::test
