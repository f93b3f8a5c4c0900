#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/model_config.h"
#include "foretrain/scenario.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The closed form: memory, step time and utilisation of a layout by arithmetic alone (MODEL 10).
/// Nothing is simulated; an estimate takes under a microsecond.
namespace foretrain {

/// Two sets of rules. kChapter adds times: tensor traffic exposed, the ring behind attention, most
/// of the gradients' traffic hidden, layers recomputed until the rest fits. kWorkshop multiplies
/// losses of utilisation and takes sharding, vpp and recomputation as the scenario has them.
enum class ClosedForm { kChapter, kWorkshop };
std::string_view to_string(ClosedForm form);

/// Every number a closed form takes as given: printed with each result, and settable.
struct Assumptions {
  ClosedForm form = ClosedForm::kChapter;
  bool has_experts = true;       ///< the model has; else what is said about experts is refused
  double parameters = 0;         ///< N, experts included; three significant figures
  double expert_parameters = 0;  ///< those of them in routed experts; three significant figures
  double peak = 0;               ///< FLOP/s of a GPU, dense
  double efficiency = 0.6;       ///< share of the peak that kernels reach
  double node_bandwidth = 0;     ///< bytes/s per GPU inside a node, one direction
  double network_bandwidth = 0;  ///< bytes/s per GPU between nodes, one direction
  double gpus_per_node = 8;
  double memory = 0;           ///< bytes of a GPU, as sold
  double memory_fraction = 1;  ///< of it that states and activations may take
  double minimum_cp_tokens = 1;
  double weight_bytes = 2;        ///< per parameter
  double gradient_bytes = 2;      ///< per parameter
  double optimizer_bytes = 12;    ///< per parameter: fp32 copy and both moments
  double activation_bytes = 34;   ///< of a dense layer, per token and hidden element
  double recomputed_bytes = 2;    ///< of a recomputed layer: its input
  double cp_overlap = 1;          ///< share of attention's time the ring can hide behind
  double pp_overlap = 0.5;        ///< share of messages between stages that is hidden
  double dp_overlap = 0.8;        ///< share of the gradients' and weights' traffic that is hidden
  double ep_overlap = 0;          ///< share of the all-to-alls that is hidden
  double expert_imbalance = 1.2;  ///< busiest expert rank over the mean
};

/// How an assumption is written: "0.6", "70.6e9", "80 GB", "450 GB/s", "989 TFLOP/s".
enum class AssumptionUnit { kNumber, kBytes, kBandwidth, kFlopRate };

/// One row per assumption: its key, what it means, which rules use it.
struct AssumptionRow {
  std::string_view key;  ///< as in --assume and in JSON
  AssumptionUnit unit;
  double Assumptions::*member;
  double least, most;  ///< legal values, both included
  std::string_view meaning;
  bool chapter, workshop;  ///< used by these rules
  bool experts = false;    ///< only of models with experts
  bool used_by(ClosedForm form) const { return form == ClosedForm::kChapter ? chapter : workshop; }
};
std::span<const AssumptionRow> assumption_rows();

/// What the rules assume of this model on this hardware; the peak is that of `compute`.
Assumptions default_assumptions(ClosedForm form,
                                const ModelConfig& model,
                                const TopologySpec& hardware,
                                DataType compute = DataType::kBf16);

/// Layers recompute until the rest fits, rather than a given number of them.
inline constexpr std::int64_t kRecomputeAsNeeded = -1;

/// A layout as the closed forms see it.
struct Layout {
  std::int64_t tp = 1, cp = 1, pp = 1, dp = 1, vpp = 1, ep = 1, etp = 1;
  std::int64_t micro_batch_size = 1;
  std::int64_t recompute_layers = kRecomputeAsNeeded;  ///< of a stage
  /// Transformer layers of the fullest pipeline rank and of the last; 0: L / pp each.
  std::int64_t most_layers = 0, last_layers = 0;
  Sharding sharding = Sharding::kZero1;
  std::string schedule = "1f1b";         ///< its bubble and what it keeps in flight
  std::int64_t slices = 1;               ///< seq1f1b: of a micro-batch
  std::string order = "tp-cp-ep-dp-pp";  ///< decides which groups leave the node
  std::int64_t gpus() const { return tp * cp * pp * dp; }
  bool operator==(const Layout&) const = default;
};

/// "tp 4 · cp 2 · pp 2 · dp 4", and what else is not 1 or not the default; no recomputation.
std::string to_string(const Layout& layout);

/// Sets one assumption, or a value of the layout that the rules take as given (sharding, vpp,
/// recompute_layers), from "KEY=VALUE". Faults: unknown key, wrong unit or range, what the rules or
/// the model do not use; pointer /assume/KEY.
Expected<bool> assume(std::string_view key_value, Assumptions& assumptions, Layout& layout);

/// Seconds of a step by cause; they sum to the step.
struct EstimateParts {
  double compute = 0, recompute = 0, imbalance = 0, tp = 0, cp = 0, ep = 0, pp = 0, bubble = 0,
         dp = 0;
};
struct EstimatePart {
  std::string_view key;    ///< JSON key, e.g. "tp"
  std::string_view label;  ///< for people, e.g. "tensor comm"
  double EstimateParts::*member;
};
std::span<const EstimatePart> estimate_parts();

/// Bytes on one GPU.
struct EstimateMemory {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0;
  double total() const { return weights + gradients + optimizer + activations; }
};

struct Estimate {
  Layout layout;
  std::int64_t micro_batches = 0;     ///< m, per pipeline and step
  double stage_layers = 0;            ///< of the fullest stage; not whole where L / pp is not
  std::int64_t recompute_layers = 0;  ///< of them
  EstimateMemory memory;
  double memory_limit = 0;  ///< bytes: assumed memory times its usable share
  bool fits = false;
  EstimateParts parts;
  double step_time_s = 0;
  double model_flops = 0;  ///< of a step over all GPUs, without recomputation
  double mfu = 0;          ///< model_flops over GPUs x peak x step
};

/// One bar of the utilisation waterfall: what is left after this loss.
struct WaterfallStep {
  std::string_view after;  ///< kernels, bubble, tensor, data, recompute, ...
  double mfu = 0;
};

/// The sizes of a model and job that layouts share; estimate() only reads it, from any thread.
class Estimator {
 public:
  Estimator(const ModelConfig& model,
            std::int64_t sequence_length,
            std::int64_t global_batch_size,
            const Assumptions& assumptions);

  /// The degrees must divide what they split (see search.h for which do). A layout that does not
  /// fit has every layer recomputed where recomputation is as needed, and `fits` false.
  Estimate estimate(const Layout& layout) const;

  const Assumptions& assumptions() const { return assumptions_; }

  struct Sizes;  ///< what the rules read, precomputed

 private:
  Assumptions assumptions_;
  std::shared_ptr<const Sizes> sizes_;
};

/// Bytes/s of a GPU among the ranks of a dimension (tp, cp, dp, pp): the network's when they, with
/// all dimensions inside theirs, take more GPUs than a node has.
double link_bandwidth(const Assumptions& assumptions,
                      const Layout& layout,
                      std::string_view outermost);

/// kernels first, the estimate's mfu last; losses of nothing are left out beyond the usual five.
std::vector<WaterfallStep> waterfall(const Estimate& estimate, const Assumptions& assumptions);

/// The layout of a scenario as these rules see it: kChapter ignores sharding, vpp, schedule and
/// recomputation.
Layout layout_of(const Scenario& scenario, ClosedForm form);

/// What a scenario says that these rules leave out, a line each.
std::vector<std::string> left_out(const Scenario& scenario, ClosedForm form);

/// What these rules leave out of any scenario, a few words each.
std::vector<std::string> never_counted(ClosedForm form);

}  // namespace foretrain
