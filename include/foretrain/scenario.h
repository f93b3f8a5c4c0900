#pragma once

#include "foretrain/cost_spec.h"
#include "foretrain/diagnostic.h"
#include "foretrain/mesh.h"
#include "foretrain/model_config.h"
#include "foretrain/schedule.h"
#include "foretrain/topology_spec.h"
#include "foretrain/units.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What the user says, validated: section by section as in the scenario file. A Scenario in hand is
/// consistent: products match, every divisibility rule holds, every default is filled in.
namespace foretrain {

struct ClusterSpec {
  std::string topology;  ///< preset name or path as written
  std::int64_t gpus = 0;
  TopologySpec hardware;  ///< the resolved file
};

enum class DataType { kFp32, kBf16, kFp16, kFp8, kNvfp4 };

/// Bytes of one element; scaling factors of narrow types are not counted.
constexpr std::int64_t bytes_per_element(DataType type) {
  return type == DataType::kFp32 ? 4 : type == DataType::kBf16 || type == DataType::kFp16 ? 2 : 1;
}

/// Types that only the GEMMs of linear layers compute in; their operands are quantised.
constexpr bool is_narrow(DataType type) {
  return type == DataType::kFp8 || type == DataType::kNvfp4;
}

/// A GPU's dense peak in a type; 0 where it lacks the type. Not for fp32, which no peak stands for.
constexpr FlopRate dense_peak(const GpuSpec& gpu, DataType type) {
  return type == DataType::kFp8     ? gpu.fp8_dense
         : type == DataType::kNvfp4 ? gpu.nvfp4_dense
                                    : gpu.bf16_dense;
}

struct PrecisionSpec {
  DataType compute = DataType::kBf16;
  /// How operands become narrow: delayed, tensorwise, blockwise, mxfp8 (fp8), nvfp4; else empty.
  std::string recipe;
  DataType attention = DataType::kBf16;
  DataType params = DataType::kBf16;
  DataType grads = DataType::kFp32;    ///< main gradients, accumulated and reduced in this type
  DataType moments = DataType::kFp32;  ///< both Adam moments
  DataType param_gather = DataType::kBf16;
};

struct TrainingSpec {
  std::int64_t sequence_length = 0;    ///< s, tokens
  std::int64_t global_batch_size = 0;  ///< sequences per step
  std::int64_t micro_batch_size = 1;   ///< b, sequences
  PrecisionSpec dtype;
  std::string optimizer = "adamw";          ///< adamw, adam, sgd
  std::int64_t multi_token_prediction = 0;  ///< modules trained, of those the model has
  /// Tokens attend within documents of so many; 0: the sequence is one document.
  std::int64_t document_length = 0;
};

enum class Sharding { kNone, kZero1, kZero2, kZero3 };
enum class ContextKind { kRing, kAllGather, kUlysses };

struct FsdpSpec {
  std::string unit = "layer";
  int prefetch = 1;
  bool reshard_after_forward = true;
  /// Gradients are reduced after every "micro_batch", or after each "run" of a chunk's backwards:
  /// at pp 1, or with 1f1b, once a step.
  std::string reduction = "micro_batch";
};

struct Parallelism {
  std::int64_t tp = 1, cp = 1, pp = 1, vpp = 1, ep = 1, etp = 1, dp = 1;
  std::string order = "tp-cp-ep-dp-pp";  ///< innermost first
  bool sequence_parallel = true;
  Sharding sharding = Sharding::kZero1;
  bool embedding_and_loss_as_layers = false;
  std::vector<std::int64_t> layers_per_stage;  ///< resolved: pp * vpp entries, virtual-stage order
  std::vector<std::int64_t> predictions_per_stage;  ///< resolved likewise; empty: none are trained
  std::optional<std::int64_t> first_stage_layers, last_stage_layers;
  std::string layout;  ///< Megatron's layout string, or empty
  bool kv_replication = false;
  ContextKind cp_kind = ContextKind::kRing;
  std::int64_t shard_group = 0;  ///< 0: all data-parallel ranks
  std::optional<FsdpSpec> fsdp;
  std::int64_t bucket_bytes = 0;  ///< 0: one bucket per chunk
};

struct ScheduleSpec {
  std::string name = "1f1b";
  std::int64_t group = 0;  ///< interleaved: micro-batches per group; 0: pp
  bool barrier = true;
  std::string p2p = "eager";
  std::string overlap_semantics = "atomic";
  std::string csv;                ///< path of a user's own lists, or empty
  std::optional<Schedule> lists;  ///< of that file
  std::int64_t slices = 1;        ///< seq1f1b: sequence slices of a micro-batch
  /// Rendezvous without overlap.pp: transfers between two units are posted together.
  bool batched = true;
  /// Transfers that share a stream: of one "direction" of a pair, of a "pair", or "shared" by all.
  std::string streams = "direction";
  std::optional<Duration> overlapped;  ///< stated time of an overlapped unit; unset: its operators
  std::int64_t copies = 1;             ///< derived: of the model, 2 where it runs both ways
};

enum class RecomputeMode { kNone, kSelective, kFull, kModules };
struct RecomputeSpec {
  RecomputeMode mode = RecomputeMode::kNone;
  std::vector<std::string> modules;
  std::optional<std::int64_t> layers;  ///< of each stage, or chunk where vpp > 1; unset: all
};

struct OverlapSpec {
  bool tp = false, cp = true, pp = true, ep = false, dp_grad = true, dp_param = true;
  /// Factor on kernels that run wholly beside transfers, 1: they cost each other nothing. Unset:
  /// from the GPU's constants (MODEL 4.7), which constant costs do without: 1 there.
  std::optional<double> contention;
};

struct NetworkSpec {
  std::string mode = "analytic";
  std::string routing = "destination";  ///< destination, hashed, single
};

struct StepWindow {
  std::int64_t first = 0, last = 0;  ///< inclusive, step numbers from 0
};

/// What one rank's experts of one layer and micro-batch get, in any unit.
struct ExpertLoad {
  std::int64_t layer = 0, micro_batch = 0;
  std::int64_t rank = 0;  ///< within the expert-parallel group
  double load = 0.0;
};

/// One entry of "perturbations". Which fields count depends on `kind`.
struct Perturbation {
  std::string
      kind;  ///< slow_gpu slow_node slow_link jitter pause sequence_lengths expert_imbalance
  std::vector<std::int64_t> ranks;  ///< slow_gpu
  std::vector<std::int64_t> nodes;  ///< slow_node
  double factor = 1.0;
  std::string link;
  std::string scope;         ///< jitter: kernel, step, rank
  std::string distribution;  ///< jitter, expert_imbalance: lognormal
  double sigma = 0.0;
  bool all_ranks = false;  ///< pause
  Duration length{}, period{};
  bool in_phase = false;
  std::string file;
  std::vector<ExpertLoad> loads;  ///< expert_imbalance: what the file says
  std::optional<StepWindow> steps;
};

struct Scenario {
  std::string name;
  std::string model_reference;  ///< preset name or path as written; empty for an inline model
  ModelConfig model;
  ClusterSpec cluster;
  TrainingSpec training;
  Parallelism parallelism;
  ScheduleSpec schedule;
  RecomputeSpec recompute;
  OverlapSpec overlap;
  NetworkSpec network;
  CostSpec costs;
  StackSpec stack;
  std::vector<Perturbation> perturbations;
  std::uint64_t seed = 0;

  std::int64_t micro_batches() const {  ///< m, per pipeline and step
    return training.global_batch_size / (parallelism.dp * training.micro_batch_size);
  }
};

/// Rules that a caller waives: none for a scenario that is to be simulated.
struct ScenarioWaivers {
  bool kv_heads_limit_tp = false;  ///< waived: tp need not divide the key/value heads
};

/// Faults of a scenario's cluster, routing and slow links; asked where those were read, whatever
/// else is at fault.
using ClusterCheck = std::function<std::vector<Diagnostic>(const Scenario&)>;

/// Reads, resolves (presets, defaults, derived values) and validates a scenario.
/// `name_or_path`: a preset of scenarios/ or a path. `overrides`: "dotted.path=value" each.
/// Errors: every fault found, those of `check` too, with JSON pointers; kFile if a file cannot be
/// read.
Expected<Scenario> read_scenario(const std::string& name_or_path,
                                 const std::vector<std::string>& overrides = {},
                                 const ScenarioWaivers& waived = {},
                                 const ClusterCheck& check = {});

/// The same from JSON text; `base_directory` resolves relative paths inside it.
Expected<Scenario> parse_scenario(const std::string& text,
                                  const std::string& base_directory = ".",
                                  const std::vector<std::string>& overrides = {},
                                  const ScenarioWaivers& waived = {},
                                  const ClusterCheck& check = {});

/// The resolved scenario as JSON text (every default filled in, dp, micro_batches and
/// layers_per_stage derived). Reading it back gives the same Scenario.
std::string write_scenario(const Scenario& scenario);

/// The schedule's section as JSON text on one line, defaults left out.
std::string write_schedule(const ScheduleSpec& schedule);

/// The schedule a scenario asks for, built. Faults: none for a scenario that was read.
Expected<Schedule> schedule_of(const Scenario& scenario);

/// The mesh a scenario asks for: its degrees, order and node size.
MeshSize mesh_size(const Scenario& scenario);

/// Transformer layers of each virtual stage (pp * vpp entries, virtual-stage order: stage s = chunk
/// * pp
/// + pipeline rank) from whichever of the contract's forms the scenario uses. Faults name the
/// remainder and the legal options; pointer /parallelism or /parallelism/layers_per_stage.
Expected<std::vector<std::int64_t>> split_layers(std::int64_t layers,
                                                 const Parallelism& parallelism);

/// Ranks that reduce gradients with one another, and split the states where they are sharded. Two
/// model copies share both: a pair of pipeline ranks holds the same two stages.
struct ShardSpan {
  std::int64_t ranks = 1;         ///< of dp x cp x copies: all, or shard_group of them
  std::int64_t expert_ranks = 1;  ///< the same of edp, for routed experts
  std::int64_t replicas = 1;      ///< such groups: hybrid sharding sums over them once more
  std::int64_t owners = 1;        ///< ranks that split the states: `ranks`, or 1 without sharding
  std::int64_t expert_owners = 1;
};
ShardSpan shard_span(const Scenario& scenario);

/// Reads a topology preset or file, with its GPU file; the same fault rules.
Expected<TopologySpec> read_topology(const std::string& name_or_path);

/// Reads a model preset or a Hugging Face config.json; the same fault rules.
Expected<ModelConfig> read_model(const std::string& name_or_path);

}  // namespace foretrain
