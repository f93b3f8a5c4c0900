#include "sim/scenario/sections.h"

namespace foretrain {
namespace {

constexpr std::string_view kPresets[] = {"bf16", "fp16", "fp8", "nvfp4"};
constexpr std::string_view kOptimizers[] = {"adamw", "adam", "sgd"};
constexpr std::string_view kRecipes[] = {"delayed", "tensorwise", "blockwise", "mxfp8", "nvfp4"};

void read_precision(JsonCursor& at, PrecisionSpec& precision) {
  if (at.is_string()) {
    precision = precision_preset(at.choice(kPresets).value_or("bf16"));
    return;
  }
  if (!at.is_object()) {
    at.fault("must be a data type's name or an object", "e.g. \"bf16\"");
    return;
  }
  if (read_word(at, "compute", kDataTypes, precision.compute)) {
    precision =
        precision_preset(std::string(kDataTypes[static_cast<std::size_t>(precision.compute)]));
  }
  const bool fp4 = precision.compute == DataType::kNvfp4;
  if (!at.read("recipe", precision.recipe, kRecipes)) {
    // the compute type's own
  } else if (!is_narrow(precision.compute)) {
    at.member("recipe")->fault("only fp8 and nvfp4 have a recipe", "leave it out");
  } else if (fp4 != (precision.recipe == "nvfp4")) {
    at.member("recipe")->fault(
        "recipe " + precision.recipe + " is not one of " + (fp4 ? "nvfp4" : "fp8"),
        fp4 ? "nvfp4" : "delayed, tensorwise, blockwise or mxfp8");
  }
  read_word(at, "attention", kDataTypes, precision.attention);
  if (read_word(at, "params", kDataTypes, precision.params) && is_narrow(precision.params)) {
    precision.param_gather = precision.params;  // what is stored is what is gathered
  }
  read_word(at, "grads", kDataTypes, precision.grads);
  read_word(at, "moments", kDataTypes, precision.moments);
  read_word(at, "param_gather", kDataTypes, precision.param_gather);
  at.finish();
}

/// "grad_dtype" beside "dtype": the same thing as dtype's "grads", so both may not differ.
void read_grad_dtype(JsonCursor& section, const JsonCursor* dtype, PrecisionSpec& precision) {
  DataType grads = precision.grads;
  if (!read_word(section, "grad_dtype", kDataTypes, grads)) {
    return;
  }
  const bool stated = dtype != nullptr && dtype->value().find("grads") != nullptr;
  if (stated && grads != precision.grads) {
    section.member("grad_dtype")->fault("contradicts /training/dtype/grads", "give one of them");
  }
  precision.grads = grads;
}

}  // namespace

PrecisionSpec precision_preset(const std::string& name) {
  PrecisionSpec precision;
  if (name == "fp16") {
    precision.compute = precision.attention = DataType::kFp16;
    precision.params = precision.param_gather = DataType::kFp16;
  } else if (name == "fp32") {
    precision.compute = precision.attention = DataType::kFp32;
    precision.params = precision.param_gather = DataType::kFp32;
  } else if (name == "fp8") {
    precision.compute = DataType::kFp8;
    precision.recipe = "tensorwise";
  } else if (name == "nvfp4") {
    precision.compute = DataType::kNvfp4;
    precision.recipe = "nvfp4";
  }
  return precision;
}

void read_training(JsonCursor& section, TrainingSpec& training, StatedValues& stated) {
  if (!section.expect_object()) {
    return;
  }
  if (const auto at = section.require("sequence_length", "tokens, e.g. 8192")) {
    training.sequence_length = at->integer(kPositive).value_or(0);
  }
  if (const auto at = section.require("global_batch_size", "sequences per step, e.g. 2048")) {
    training.global_batch_size = at->integer(kPositive).value_or(0);
  }
  section.read("micro_batch_size", training.micro_batch_size, kPositive);
  std::optional<JsonCursor> dtype = section.member("dtype");
  if (dtype) {
    read_precision(*dtype, training.dtype);
  }
  read_grad_dtype(section, dtype ? &*dtype : nullptr, training.dtype);
  section.read("optimizer", training.optimizer, kOptimizers);
  stated.multi_token_prediction =
      section.read("multi_token_prediction", training.multi_token_prediction, {0, 1'000});
  section.read("document_length", training.document_length, {0, kLargestInteger});
  section.finish();
}

}  // namespace foretrain
