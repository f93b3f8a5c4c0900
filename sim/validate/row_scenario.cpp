#include "sim/validate/row_scenario.h"

#include "sim/base/format.h"
#include "sim/scenario/json_value.h"
#include "sim/search/stages.h"
#include "sim/validate/model_of_row.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

struct RequiredField {
  std::string_view name;
  std::optional<std::int64_t> PublishedRow::*member;
};
constexpr RequiredField kRequiredFields[] = {
    {"layers", &PublishedRow::layers},
    {"hidden", &PublishedRow::hidden},
    {"seq", &PublishedRow::seq},
    {"gpus", &PublishedRow::gpus},
    {"tp", &PublishedRow::tp},
    {"pp", &PublishedRow::pp},
    {"gbs", &PublishedRow::gbs},
};

/// Puts a row's scenario together; every rule for what a source leaves out is one function.
class RowMapper {
 public:
  RowMapper(const PublishedRow& row,
            const PublishedSource& source,
            const PublishedHardware& hardware)
      : row_(row), source_(source), hardware_(hardware) {}

  RowScenario map(const ModelSpelling& spelling) {
    const RowModel model = model_of_row(row_, spelling);
    if (!model.missing.empty()) {
      skip(SkipReason::kIncomplete, "not published: " + model.missing);
      return std::move(result_);
    }
    result_.assumed = model.assumed;
    set("name", json_string(row_.id));
    set("model", model.json);
    add_all(source_.settings);
    cluster();
    degrees();
    batch();
    precision();
    sharding();
    stages();
    transfers();
    recomputation();
    for (const Spelling* spelling_within : spellings_within(row_, source_)) {
      apply(*spelling_within);
    }
    return std::move(result_);
  }

 private:
  void set(const std::string& path, const std::string& value) {
    result_.settings.push_back(path + "=" + value);
  }
  void set(const std::string& path, std::int64_t value) { set(path, std::to_string(value)); }
  void add_all(std::string_view settings) {
    for (std::string& setting : split_settings(settings)) {
      if (setting.starts_with("stack") || setting.starts_with("overlap")) {
        result_.software += setting + ";";
      }
      result_.settings.push_back(std::move(setting));
    }
  }
  void assume(const std::string& what) { result_.assumed.push_back(what); }
  void skip(SkipReason reason, const std::string& detail) {
    if (!result_.skipped) {
      result_.skipped = reason;
      result_.detail = detail;
    }
  }
  void apply(const Spelling& spelling) {
    const std::string before = result_.software;
    add_all(spelling.settings);
    if (spelling.assumed.empty()) {
      return;
    }
    if (spelling.settings.empty() || result_.software != before) {  // not said of a layout
      result_.software += std::string(spelling.assumed) + ";";
    }
    assume(std::string(spelling.assumed));
  }
  /// The settings of a column's one word; unknown words skip the row.
  void word(PublishedColumn column,
            const std::string& text,
            const std::string& name,
            SkipReason reason) {
    if (const Spelling* const spelling = spelling_of(column, text, source_)) {
      apply(*spelling);
    } else {
      skip(reason, name + " \"" + text + "\" is not known");
    }
  }

  void cluster() {
    set("cluster.topology", std::string(hardware_.topology));
    set("cluster.gpus", *row_.gpus);
    const std::int64_t node = row_.gpus_per_node.value_or(8);
    if (!hardware_.network_told && *row_.gpus > node) {
      assume("network " + std::string(hardware_.topology));
    }
  }

  void degrees() {
    set("parallelism.tp", *row_.tp);
    set("parallelism.pp", *row_.pp);
    if (row_.cp) {
      set("parallelism.cp", *row_.cp);
    }
    if (row_.dp) {
      set("parallelism.dp", *row_.dp);
    }
    if (row_.kv_heads && *row_.kv_heads < *row_.tp) {
      set("parallelism.kv_replication", "true");
    }
    if (row_.experts) {
      experts();
    }
    if (*row_.tp > 1) {
      const bool sequence_parallel = row_.sp ? *row_.sp != 0 : source_.sequence_parallel;
      set("parallelism.sequence_parallel", sequence_parallel ? "true" : "false");
      if (!row_.sp) {
        assume(sequence_parallel ? "sequence parallelism" : "no sequence parallelism");
      }
    }
  }

  void experts() {
    set("parallelism.ep", row_.ep.value_or(1));
    const std::int64_t ranks = *row_.gpus / *row_.pp;  // of a stage
    const bool folds = ranks / *row_.tp % row_.ep.value_or(1) == 0;
    const std::int64_t etp = source_.experts_over_tp && folds ? *row_.tp : 1;
    const bool told = row_.notes.find("ETP=") != std::string::npos;
    if (*row_.tp > 1 && !told) {
      set("parallelism.etp", etp);
      assume("expert tensor parallelism " + std::to_string(etp));
    }
  }

  void batch() {
    set("training.sequence_length", *row_.seq);
    set("training.global_batch_size", *row_.gbs);
    set("training.micro_batch_size", row_.mbs.value_or(1));
    if (!row_.mbs) {
      assume("micro-batches of 1");
    }
  }

  void precision() {
    result_.dtype = row_.dtype.empty() ? "bf16" : row_.dtype;
    if (row_.dtype.empty()) {
      assume("bf16");
    }
    word(PublishedColumn::kDtype, result_.dtype, "precision", SkipReason::kPrecision);
  }

  void sharding() {
    if (!row_.sharding.empty()) {
      word(PublishedColumn::kSharding, row_.sharding, "sharding", SkipReason::kParallelism);
      return;
    }
    set("parallelism.sharding", std::string(source_.sharding));
    if (replicas() > 1) {
      assume("sharding " + std::string(source_.sharding));
    }
  }

  /// dp x cp; 1 where the degrees do not divide the GPUs, which reading the scenario refuses.
  std::int64_t replicas() const {
    return std::max<std::int64_t>(1, *row_.gpus / *row_.tp / *row_.pp);
  }

  std::int64_t micro_batches() const {
    const std::int64_t dp = std::max<std::int64_t>(1, replicas() / row_.cp.value_or(1));
    return std::max<std::int64_t>(1, *row_.gbs / dp / row_.mbs.value_or(1));
  }

  /// One layer a chunk, where the layers and the micro-batches allow; else 1.
  std::int64_t usual_vpp() const {
    const std::int64_t pp = *row_.pp;
    const bool divides = *row_.layers % pp == 0 && micro_batches() % pp == 0;
    return divides ? *row_.layers / pp : 1;
  }

  /// Chunks of a rank: the schedule's own, as published, or as the rule for this source has it.
  std::int64_t chunks_of_a_rank() {
    const Spelling* const schedule =
        spelling_of(PublishedColumn::kSchedule, row_.schedule, source_);
    if (schedule != nullptr && schedule->vpp > 0) {
      return schedule->vpp;
    }
    if (row_.vpp || *row_.pp == 1) {
      return row_.vpp.value_or(1);
    }
    const bool interleaved = source_.interleaves || row_.schedule == "interleaved-1F1B";
    const std::int64_t vpp = interleaved ? usual_vpp() : 1;
    assume("vpp " + std::to_string(vpp));
    return vpp;
  }

  void stages() {
    const std::int64_t vpp = chunks_of_a_rank();
    set("parallelism.vpp", vpp);
    const bool plain = vpp == 1 && !row_.vpp && row_.schedule == "interleaved-1F1B";
    if (row_.schedule.empty() || plain) {
      set("schedule", vpp > 1 ? "interleaved" : "1f1b");
    } else {
      word(PublishedColumn::kSchedule, row_.schedule, "schedule", SkipReason::kSchedule);
    }
    split(vpp);
  }

  /// Whether a rank waits for its transfers. Megatron-LM's 1f1b does, its interleaved schedule and
  /// the zero-bubble runtime overlap them.
  void transfers() {
    if (*row_.pp == 1) {
      return;
    }
    const std::vector<std::string>& settings = result_.settings;
    const bool one_chunk =
        std::find(settings.begin(), settings.end(), "schedule=1f1b") != settings.end();
    const bool block = source_.transfers_block || one_chunk;
    set("overlap.pp", block ? "false" : "true");
    if (!told("overlap.pp")) {
      assume(block ? "ranks wait for pipeline transfers" : "pipeline transfers overlap");
    }
  }

  bool told(std::string_view setting) const {
    const std::vector<const Spelling*> within = spellings_within(row_, source_);
    return std::any_of(within.begin(), within.end(), [&](const Spelling* spelling) {
      return spelling->settings.find(setting) != std::string_view::npos;
    });
  }

  void split(std::int64_t vpp) {
    constexpr std::int64_t kMostLayers = 100'000;  // beyond, reading the scenario refuses
    if (*row_.layers > kMostLayers || *row_.pp > *row_.layers || vpp > *row_.layers) {
      return;
    }
    std::optional<StageSplit> split = split_stages(*row_.layers, *row_.pp, vpp, true);
    if (!split) {  // one layer more on chunks in the middle
      split = split_stages(*row_.layers, *row_.pp * vpp, 1, true);
    }
    if (!split || (!split->ends_as_layers && split->per_stage.empty())) {
      return;
    }
    if (cut_as_published(*row_.pp * vpp)) {
      return;
    }
    if (split->ends_as_layers) {
      set("parallelism.embedding_and_loss_as_layers", "true");
      assume("embedding and loss counted as layers");
      return;
    }
    std::string list;
    for (const std::int64_t layers : split->per_stage) {
      list += (list.empty() ? "" : ", ") + std::to_string(layers);
    }
    set("parallelism.layers_per_stage", "[" + list + "]");
    assume("uneven stages");
  }

  bool cut_as_published(std::int64_t chunks) {
    const bool predicts = row_.notes.find("1 MTP layer") != std::string::npos;
    for (const PublishedCut& cut : published_cuts()) {
      if (cut.chunks == chunks && row_.model.starts_with(cut.model)) {
        std::string layout(cut.layout);
        if (!predicts) {
          layout.erase(layout.find('m'), 1);
        }
        set("parallelism.layout", json_string(layout));
        assume("layout " + layout);
        return true;
      }
    }
    return false;
  }

  void recomputation() {
    if (!row_.recompute.empty()) {
      word(PublishedColumn::kRecompute, row_.recompute, "recompute", SkipReason::kParallelism);
      const Spelling* const spelling =
          spelling_of(PublishedColumn::kRecompute, row_.recompute, source_);
      if (spelling != nullptr && spelling->layers_as_needed) {
        try_layers();
      }
      return;
    }
    try_recompute({"recompute.mode=none"}, "no recomputation");
    if (row_.experts && row_.model.starts_with("DeepSeek")) {
      try_recompute({R"(recompute={"mode": "modules", "modules": ["mla_up_proj"]})"},
                    "latent projections recomputed");
      try_recompute({R"(recompute={"mode": "modules", "modules": )"
                     R"(["mla_up_proj", "layernorm", "moe_act"]})"},
                    "latent projections, norms and expert activations recomputed");
    } else if (row_.experts) {
      try_recompute({R"(recompute={"mode": "modules", "modules": ["layernorm", "moe_act"]})"},
                    "norms and expert activations recomputed");
    } else {
      try_recompute({"recompute.mode=selective"}, "core attention recomputed");
    }
    try_layers();
  }

  void try_recompute(std::vector<std::string> settings, const std::string& assumed) {
    result_.tries.push_back({std::move(settings), assumed});
  }

  /// Layers of each chunk, doubled until it fits; in the end all.
  void try_layers() {
    const std::int64_t most = *row_.layers / *row_.pp / row_.vpp.value_or(1);
    for (std::int64_t layers = 1; layers < most; layers *= 2) {
      const std::string count = std::to_string(layers);
      try_recompute({"recompute.mode=full", "recompute.layers=" + count},
                    count + " " + plural("layer", layers) + " of a chunk recomputed");
    }
    try_recompute({"recompute.mode=full"}, "full recomputation");
  }

  const PublishedRow& row_;
  const PublishedSource& source_;
  const PublishedHardware& hardware_;
  RowScenario result_;
};

RowScenario skipped_row(SkipReason reason, const std::string& detail) {
  RowScenario result;
  result.skipped = reason;
  result.detail = detail;
  return result;
}

}  // namespace

std::string missing_fields(const PublishedRow& row) {
  std::string names;
  for (const RequiredField& field : kRequiredFields) {
    if (!(row.*field.member)) {
      names += (names.empty() ? "" : ", ") + std::string(field.name);
    }
  }
  return names;
}

RowScenario scenario_of_row(const PublishedRow& row,
                            const PublishedSource& source,
                            const PublishedHardware* hardware) {
  if (const std::string names = missing_fields(row); !names.empty()) {
    return skipped_row(SkipReason::kIncomplete, "not published: " + names);
  }
  if (hardware == nullptr) {
    return skipped_row(SkipReason::kHardware, "GPU \"" + row.gpu + "\"");
  }
  const ModelSpelling* const spelling = model_spelling_of(row);
  if (spelling == nullptr || spelling->family.empty()) {
    return skipped_row(SkipReason::kModel, "model \"" + row.model + "\"");
  }
  return RowMapper(row, source, *hardware).map(*spelling);
}

}  // namespace foretrain
