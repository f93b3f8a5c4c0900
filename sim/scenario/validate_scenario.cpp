// Rules that span sections. Each asks first whether its inputs are sound: a fault in tp does not
// also surface as a fault of dp, of the batch and of the layers.
#include "foretrain/mesh.h"
#include "sim/base/format.h"
#include "sim/scenario/divides.h"
#include "sim/scenario/rules.h"
#include "sim/scenario/sections.h"

#include <algorithm>
#include <numeric>

namespace foretrain {
namespace {

/// a * b, or kLargestInteger when that is less.
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::min(Int128{a} * b, static_cast<Int128>(kLargestInteger)));
}

/// "nearest: 224 or 256"; the lower one only when above zero.
std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return "nearest: " + (below > 0 ? std::to_string(below) + " or " : "") +
         std::to_string(below + unit);
}

/// "tp 8 x pp 16 = 128", degrees of 1 left out.
std::string degrees_text(const Parallelism& p, std::int64_t model_ranks) {
  std::string factors;
  int count = 0;
  const auto add = [&](std::string_view name, std::int64_t degree) {
    if (degree > 1) {
      factors += (factors.empty() ? "" : " x ") + std::string(name) + " " + std::to_string(degree);
      ++count;
    }
  };
  add("tp", p.tp);
  add("cp", p.cp);
  add("pp", p.pp);
  return count > 1 ? factors + " = " + std::to_string(model_ranks) : factors;
}

void check_cluster(const Scenario& scenario, Rules& rules) {
  const std::int64_t most = scenario.cluster.hardware.max_gpus;
  if (rules.sound({"/cluster"}) && most > 0 && scenario.cluster.gpus > most) {
    rules.fault("/cluster/gpus",
                std::to_string(scenario.cluster.gpus) + " GPUs are more than the " +
                    std::to_string(most) + " that " + scenario.cluster.topology + " has",
                "at most " + std::to_string(most));
  }
}

void derive_dp(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  Parallelism& p = scenario.parallelism;
  if (!rules.sound({"/cluster/gpus", "/parallelism/tp", "/parallelism/cp", "/parallelism/pp"})) {
    rules.taint("/parallelism/dp");
    return;
  }
  const std::int64_t gpus = scenario.cluster.gpus;
  const std::int64_t model_ranks = product(product(p.tp, p.cp), p.pp);
  if (gpus < model_ranks || gpus % model_ranks != 0) {
    rules.fault("/parallelism",
                degrees_text(p, model_ranks) +
                    (gpus < model_ranks ? " is more than the " : " does not divide the ") +
                    std::to_string(gpus) + " " + plural("GPU", gpus),
                gpus < model_ranks
                    ? "at least " + std::to_string(model_ranks) + " GPUs, or lower degrees"
                    : nearest_multiples(gpus, model_ranks) + " GPUs");
    rules.taint("/parallelism/dp");
    return;
  }
  p.dp = gpus / model_ranks;
  if (stated.dp && *stated.dp != p.dp) {
    const std::string ranks = degrees_text(p, model_ranks);
    rules.fault("/parallelism/dp",
                "dp " + std::to_string(*stated.dp) + " contradicts " + std::to_string(gpus) + " " +
                    plural("GPU", gpus) + (ranks.empty() ? "" : " over " + ranks) +
                    ", which leave dp " + std::to_string(p.dp),
                "leave dp out, or set it to " + std::to_string(p.dp));
  }
}

void check_batch(const Scenario& scenario, const StatedValues& stated, Rules& rules) {
  const TrainingSpec& training = scenario.training;
  const std::int64_t dp = scenario.parallelism.dp;
  if (!rules.sound(
          {"/parallelism/dp", "/training/global_batch_size", "/training/micro_batch_size"})) {
    return;
  }
  const std::int64_t unit = product(dp, training.micro_batch_size);
  if (training.global_batch_size % unit != 0) {
    rules.fault("/training/global_batch_size",
                std::to_string(training.global_batch_size) + " " +
                    plural("sequence", training.global_batch_size) + " cannot be shared by dp " +
                    std::to_string(dp) + " x micro-batch " +
                    std::to_string(training.micro_batch_size),
                nearest_multiples(training.global_batch_size, unit) + " sequences");
    return;
  }
  const std::int64_t count = scenario.micro_batches();
  if (count > kMostMicroBatches) {
    rules.fault("/training/global_batch_size",
                std::to_string(count) + " micro-batches a step are more than " +
                    std::to_string(kMostMicroBatches),
                "raise dp or micro_batch_size");
  } else if (stated.micro_batches && *stated.micro_batches != count) {
    rules.fault("/parallelism/micro_batches",
                std::to_string(*stated.micro_batches) + " contradicts " +
                    std::to_string(training.global_batch_size) + " " +
                    plural("sequence", training.global_batch_size) + " over dp " +
                    std::to_string(dp) + " x micro-batch " +
                    std::to_string(training.micro_batch_size) + " = " + std::to_string(count),
                "leave micro_batches out, or set it to " + std::to_string(count));
  }
}

void check_sequence(const Scenario& scenario, Rules& rules) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t length = scenario.training.sequence_length;
  const auto must_divide = [&](std::int64_t unit, const std::string& by) {
    if (length % unit == 0) {
      return true;
    }
    rules.fault("/training/sequence_length",
                std::to_string(length) + (length == 1 ? " token does" : " tokens do") +
                    " not divide by " + by,
                nearest_multiples(length, unit) + " tokens");
    return false;
  };
  if (!rules.sound({"/training/sequence_length", "/parallelism/cp"})) {
    return;
  }
  const bool ring = p.cp > 1 && p.cp_kind == ContextKind::kRing;
  const std::int64_t parts = product(ring ? 2 : 1, p.cp);
  const std::string name =
      ring ? "2 x cp = " + std::to_string(parts) + " (ring attention's zig-zag halves)"
           : "cp " + std::to_string(parts);
  if (const ModelConfig& model = scenario.model;
      rules.sound({"/model"}) && !positions_suffice(model, length)) {
    rules.fault(
        "/training/sequence_length",
        std::to_string(length) + " tokens are more than the model's " +
            std::to_string(model.max_positions) + " learned " +
            plural("position", model.max_positions),
        "at most " + std::to_string(model.max_positions) + ", or raise the model's n_positions");
    return;
  }
  if (!must_divide(parts, name) || !rules.sound({"/parallelism/tp"})) {
    return;
  }
  if (p.sequence_parallel && p.tp > 1) {
    const std::int64_t shards = product(p.tp, p.cp);
    must_divide(shards,
                (p.cp > 1 ? "tp " + std::to_string(p.tp) + " x cp " + std::to_string(p.cp) + " = " +
                                std::to_string(shards)
                          : "tp " + std::to_string(p.tp)) +
                    " (sequence parallelism)");
  }
}

void check_recompute(const Scenario& scenario, Rules& rules) {
  const Parallelism& p = scenario.parallelism;
  if (!scenario.recompute.layers ||
      !rules.sound({"/recompute", "/parallelism/layers_per_stage", "/model"}) ||
      p.layers_per_stage.empty()) {
    return;
  }
  const std::int64_t most = *std::ranges::max_element(p.layers_per_stage);
  if (*scenario.recompute.layers > most) {
    rules.fault("/recompute/layers",
                std::to_string(*scenario.recompute.layers) + " " +
                    plural("layer", *scenario.recompute.layers) + ", but no " +
                    (p.vpp > 1 ? "chunk" : "stage") + " holds more than " + std::to_string(most),
                "at most " + std::to_string(most) + "; leave layers out to recompute all");
  }
}

void check_sharding(const Scenario& scenario, Rules& rules) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t ranks = product(p.dp, p.cp);
  if (p.shard_group > 0 && rules.sound({"/parallelism/dp", "/parallelism/shard_group"}) &&
      ranks % p.shard_group != 0) {
    rules.fault("/parallelism/shard_group",
                std::to_string(p.shard_group) + " does not divide dp x cp = " +
                    std::to_string(ranks) + " " + plural("rank", ranks),
                "");
  }
  if (p.shard_group > 0 && p.sharding == Sharding::kNone &&
      rules.sound({"/parallelism/sharding"})) {
    rules.fault("/parallelism/shard_group",
                "sharding none shards nothing",
                "set sharding to zero1, zero2 or zero3, or leave shard_group out");
  }
  const std::int64_t experts = product(p.tp, ranks) / product(p.etp, p.ep);
  if (p.shard_group > 0 && ranks % p.shard_group == 0 && scenario.model.experts > 0 &&
      rules.sound({"/parallelism/dp", "/parallelism/ep", "/parallelism/shard_group"}) &&
      experts % (ranks / p.shard_group) != 0) {
    rules.fault("/parallelism/shard_group",
                std::to_string(ranks / p.shard_group) + " shard groups do not divide the " +
                    std::to_string(experts) + " " + plural("rank", experts) +
                    " (edp) that hold the same experts",
                "a multiple of " + std::to_string(ranks / std::gcd(ranks, experts)));
  }
  const bool shards_weights = p.sharding == Sharding::kZero3;
  if (p.bucket_bytes > 0 && shards_weights && rules.sound({"/parallelism/sharding"})) {
    rules.fault("/parallelism/bucket_bytes",
                "sharding zero3 reduces unit by unit, not in buckets",
                "leave it out; fsdp.unit says what a unit is");
  }
  if (p.fsdp && !shards_weights && rules.sound({"/parallelism/sharding"})) {
    rules.fault("/parallelism/fsdp",
                "sharding " + std::string(kShardings[static_cast<std::size_t>(p.sharding)]) +
                    " gathers no units",
                "set sharding to zero3, or leave fsdp out");
  }
}

void check_precision(const Scenario& scenario, Rules& rules) {
  const GpuSpec& gpu = scenario.cluster.hardware.gpu;
  const PrecisionSpec& types = scenario.training.dtype;
  if (!rules.sound({"/training/dtype", "/cluster/topology"})) {
    return;
  }
  const bool fp8 = gpu.fp8_dense.flops_per_second > 0;
  const bool fp4 = gpu.nvfp4_dense.flops_per_second > 0;
  const std::string otherwise = fp8 ? "bf16, fp16 or fp8" : gpu.bf16 ? "bf16 or fp16" : "fp16";
  if (types.compute == DataType::kBf16 && !gpu.bf16) {
    rules.fault("/training/dtype", gpu.display_name + " has no bf16", otherwise);
  }
  if (types.compute == DataType::kFp8 && !fp8) {
    rules.fault("/training/dtype", gpu.display_name + " has no fp8", otherwise);
  } else if (types.compute == DataType::kNvfp4 && !fp4) {
    rules.fault("/training/dtype", gpu.display_name + " has no nvfp4", otherwise);
  } else if (types.recipe == "mxfp8" && !fp4) {
    rules.fault("/training/dtype/recipe",
                gpu.display_name + " does not scale blocks of 32 in its tensor cores",
                "delayed, tensorwise or blockwise");
  }
  if (is_narrow(types.params) && !is_narrow(types.compute)) {
    rules.fault("/training/dtype/params",
                "narrow weights are for GEMMs that compute in fp8",
                "bf16, fp16 or fp32, or compute in fp8");
  }
}

void check_mesh(const Scenario& scenario, Rules& rules) {
  if (!rules.sound({"/parallelism/tp",
                    "/parallelism/cp",
                    "/parallelism/pp",
                    "/parallelism/dp",
                    "/parallelism/ep",
                    "/parallelism/etp",
                    "/parallelism/order",
                    "/cluster/topology"})) {
    return;
  }
  if (const Expected<DeviceMesh> mesh = DeviceMesh::build(mesh_size(scenario)); !mesh) {
    for (const Diagnostic& fault : mesh.error().list) {
      rules.fault(fault.pointer, fault.message, fault.hint);
    }
  }
}

}  // namespace

MeshSize mesh_size(const Scenario& scenario) {
  const Parallelism& degrees = scenario.parallelism;
  MeshSize size;
  size.tp = degrees.tp;
  size.cp = degrees.cp;
  size.dp = degrees.dp;
  size.pp = degrees.pp;
  size.ep = degrees.ep;
  size.etp = degrees.etp;
  size.order = degrees.order;
  size.gpus_per_node = scenario.cluster.hardware.gpus_per_node;
  return size;
}

ShardSpan shard_span(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t all = p.dp * p.cp * scenario.schedule.copies;
  ShardSpan span;
  span.ranks = p.shard_group > 0 ? p.shard_group : all;
  span.replicas = all / span.ranks;
  span.expert_ranks = std::max<std::int64_t>(1, p.tp * all / (p.etp * p.ep) / span.replicas);
  if (p.sharding != Sharding::kNone) {
    span.owners = span.ranks;
    span.expert_owners = span.expert_ranks;
  }
  return span;
}

void validate_scenario(Scenario& scenario,
                       const StatedValues& stated,
                       const ScenarioWaivers& waived,
                       std::vector<Diagnostic>& faults) {
  Rules rules(faults, waived);
  check_cluster(scenario, rules);
  derive_dp(scenario, stated, rules);
  check_batch(scenario, stated, rules);
  check_sequence(scenario, rules);
  check_precision(scenario, rules);
  check_schedule(scenario, stated, rules);
  check_model(scenario, stated, rules);
  check_mesh(scenario, rules);
  check_recompute(scenario, rules);
  check_sharding(scenario, rules);
  check_perturbations(scenario, rules);
  check_contention(scenario, stated, rules);
}

}  // namespace foretrain
