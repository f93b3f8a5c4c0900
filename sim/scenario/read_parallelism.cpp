#include "sim/scenario/layout.h"
#include "sim/scenario/sections.h"

#include <iterator>

namespace foretrain {
namespace {

void read_layers_per_stage(JsonCursor& section, std::vector<std::int64_t>& layers) {
  const std::optional<JsonCursor> at = section.member("layers_per_stage");
  if (!at) {
    return;
  }
  if (at->is_array() &&
      (at->value().items.empty() || std::ssize(at->value().items) > kMostStages)) {
    at->fault("must have pp or pp x vpp entries, not " + std::to_string(at->value().items.size()));
    return;
  }
  for (const JsonCursor& entry : at->elements()) {
    layers.push_back(entry.integer({0, 1'000'000}).value_or(0));
  }
}

void read_fsdp(JsonCursor& at, FsdpSpec& fsdp) {
  constexpr std::string_view kUnits[] = {"layer", "stage", "model"};
  constexpr std::string_view kReductions[] = {"micro_batch", "run"};
  if (!at.expect_object()) {
    return;
  }
  at.read("unit", fsdp.unit, kUnits);
  at.read("prefetch", fsdp.prefetch, {0, 1024});
  at.read("reshard_after_forward", fsdp.reshard_after_forward);
  at.read("reduction", fsdp.reduction, kReductions);
  at.finish();
}

void read_stages(JsonCursor& section, Parallelism& parallelism) {
  section.read("embedding_and_loss_as_layers", parallelism.embedding_and_loss_as_layers);
  read_layers_per_stage(section, parallelism.layers_per_stage);
  std::int64_t count = 0;
  if (section.read("first_stage_layers", count, {0, 1'000'000})) {
    parallelism.first_stage_layers = count;
  }
  if (section.read("last_stage_layers", count, {0, 1'000'000})) {
    parallelism.last_stage_layers = count;
  }
  section.read("layout", parallelism.layout);
}

}  // namespace

void read_parallelism(JsonCursor& section, Parallelism& parallelism, StatedValues& stated) {
  if (!section.expect_object()) {
    return;
  }
  section.read("tp", parallelism.tp, kPositive);
  section.read("cp", parallelism.cp, kPositive);
  section.read("pp", parallelism.pp, kPositive);
  stated.vpp = section.read("vpp", parallelism.vpp, kPositive);
  section.read("ep", parallelism.ep, kPositive);
  section.read("etp", parallelism.etp, kPositive);
  std::int64_t derived = 0;
  if (section.read("dp", derived, kPositive)) {
    stated.dp = derived;
  }
  if (section.read("micro_batches", derived, kPositive)) {
    stated.micro_batches = derived;
  }
  section.read("order", parallelism.order);
  section.read("sequence_parallel", parallelism.sequence_parallel);
  read_word(section, "sharding", kShardings, parallelism.sharding);
  read_stages(section, parallelism);
  section.read("kv_replication", parallelism.kv_replication);
  read_word(section, "cp_kind", kContextKinds, parallelism.cp_kind);
  section.read("shard_group", parallelism.shard_group);
  if (std::optional<JsonCursor> at = section.member("fsdp")) {
    parallelism.fsdp.emplace();
    read_fsdp(*at, *parallelism.fsdp);
  }
  if (const std::optional<JsonCursor> at = section.member("bucket_bytes")) {
    parallelism.bucket_bytes =
        at->is_string() ? at->bytes().value_or(Bytes{}).value : at->integer().value_or(0);
  }
  section.finish();
}

}  // namespace foretrain
