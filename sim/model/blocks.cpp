#include "foretrain/model.h"
#include "sim/base/check.h"
#include "sim/base/data_directory.h"

namespace foretrain {

std::string_view to_string(BlockKind kind) {
  switch (kind) {
    case BlockKind::kEmbedding:
      return "embedding";
    case BlockKind::kDense:
      return "dense";
    case BlockKind::kMoe:
      return "moe";
    case BlockKind::kPrediction:
      return "prediction";
    case BlockKind::kHead:
      break;
  }
  return "head";
}

std::vector<BlockKind> model_blocks(const ModelConfig& model) {
  std::vector<BlockKind> blocks = {BlockKind::kEmbedding};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool dense = model.experts == 0 || layer < model.dense_first;
    blocks.push_back(dense ? BlockKind::kDense : BlockKind::kMoe);
  }
  blocks.push_back(BlockKind::kHead);
  return blocks;
}

std::vector<StageSlice> stage_slices(const ModelConfig& model, const Parallelism& parallelism) {
  std::vector<StageSlice> slices;
  std::int64_t next_layer = 0;
  for (const std::int64_t layers : parallelism.layers_per_stage) {
    slices.push_back({next_layer, layers, false, false});
    next_layer += layers;
  }
  for (std::size_t stage = 0; stage < parallelism.predictions_per_stage.size(); ++stage) {
    slices[stage].predictions = parallelism.predictions_per_stage[stage];
  }
  FORETRAIN_CHECK(!slices.empty() && next_layer == model.layers,
                  "layers_per_stage holds %lld of %lld layers",
                  static_cast<long long>(next_layer),
                  static_cast<long long>(model.layers));
  slices.front().embedding = true;
  slices.back().head = true;
  return slices;
}

std::vector<std::string> model_presets() {
  return preset_names("scenarios/models");
}

}  // namespace foretrain
