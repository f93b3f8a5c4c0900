#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/estimate.h"
#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Every legal layout of a model on a cluster: estimated, ranked, the best simulated.
namespace foretrain {

/// What is to be trained, and where; no layout yet.
struct TrainingJob {
  std::string model_reference, topology;  ///< preset names or paths, as in a scenario file
  ModelConfig model;
  TopologySpec hardware;
  std::int64_t gpus = 0;
  std::int64_t sequence_length = 0;    ///< tokens
  std::int64_t global_batch_size = 0;  ///< sequences per step
};

/// Reads the files a job names and checks its sizes. Faults: pointers /model, /cluster/topology,
/// /cluster/gpus, /training/sequence_length, /training/global_batch_size.
Expected<TrainingJob> read_job(const std::string& model,
                               const std::string& topology,
                               std::int64_t gpus,
                               std::int64_t sequence_length,
                               std::int64_t global_batch_size);

/// A scenario file for a layout of a job, as short as it can be: defaults left out. Gradients are
/// of the assumed size; recompute_layers must be a number, or none recompute.
std::string scenario_text(const TrainingJob& job,
                          const Layout& layout,
                          const Assumptions& assumptions,
                          const std::string& name);

/// As a value of recompute_layers: every layer of a stage.
inline constexpr std::int64_t kRecomputeAll = -2;

/// Slices of a micro-batch in a search.
inline constexpr std::int64_t kSearchSlices = 4;

/// Values to try beside tp x cp x pp (and ep where there are experts).
struct SearchAxes {
  std::vector<std::int64_t> micro_batch_sizes = {1};
  std::vector<std::int64_t> vpp = {1};
  std::vector<std::int64_t> recompute_layers = {kRecomputeAsNeeded};  ///< of a stage
  std::vector<Sharding> shardings = {Sharding::kZero1};
  /// Of the table. One that runs two chunks a rank does so whatever `vpp` holds; one that cuts
  /// sequences cuts them in kSearchSlices.
  std::vector<std::string> schedules = {"1f1b"};
  std::vector<std::string> orders = {"tp-cp-ep-dp-pp"};
  /// Where the layers do not divide by pp: count embedding and loss as layers, or give some stages
  /// one layer fewer. Off: such a pp is not legal.
  bool uneven_stages = false;
};

struct SearchOptions {
  SearchAxes axes;
  Assumptions assumptions;
  /// The best so many; where some do not fit, the next ones as well, up to four times as many in
  /// all. 0: closed form only.
  std::int64_t simulate = 5;
  std::int64_t short_list = 3;  ///< a list of fewer is explained by `reason`
  int threads = 0;              ///< 0: all cores; never changes the result
  std::vector<Layout> shown;    ///< tp, cp, pp of layouts whose place is asked for; changes none
  /// Called, where set, from one thread at a time as simulations end.
  std::function<void(int done, int total)> progress;
};

/// What the simulation says of a layout.
struct SimulatedLayout {
  double step_time_s = 0, mfu = 0;
  std::int64_t memory_bytes = 0;     ///< peak of the heaviest stage
  std::int64_t context_bytes = 0;    ///< what a GPU needs beside it, for CUDA and NCCL
  std::int64_t memory_capacity = 0;  ///< of a GPU
  StageMemory memory;                ///< the peak by its parts
  Fit fits = Fit::kYes;
  bool deadlock = false;
};

/// A scenario's text, read and simulated as any other. Where that cannot be: why, in words.
tl::expected<SimulatedLayout, std::string> simulate_text(
    const std::string& scenario_json,
    const std::function<void(int done, int total)>& progress = {});

struct RankedLayout {
  Estimate estimate;
  /// From 1: what fits when simulated, by the simulation; then what was not simulated; last what
  /// does not fit when simulated.
  std::int64_t rank = 0;
  std::int64_t closed_form_rank = 0;  ///< from 1
  std::optional<SimulatedLayout> simulated;
  std::string not_simulated;  ///< why not, where simulation was asked for
  /// The simulation says that it does not fit, or hangs.
  bool refuted() const { return simulated && (simulated->deadlock || simulated->fits == Fit::kNo); }
};

/// A layout that was asked for by name.
struct ShownLayout {
  std::int64_t tp = 1, cp = 1, pp = 1;
  std::optional<RankedLayout> layout;  ///< the best with these degrees, simulated where asked for
  std::string reason;                  ///< why it is not in the list
};

/// Why layouts are left out, each counted once, by the first rule it breaks; memory comes last.
struct Exclusion {
  std::string rule;  ///< e.g. "pp does not divide 80 layers"
  std::int64_t layouts = 0;
  std::string way_out;  ///< a change of the search that would let them in; may be empty
};

/// An option of the search's command line, and its value; a flag has none.
struct SearchChange {
  std::string option, value;  ///< "--schedules", "interleaved"
  bool operator==(const SearchChange&) const = default;
};

struct SearchResult {
  std::int64_t examined = 0;          ///< combinations of every axis
  std::int64_t legal = 0;             ///< of them, those that keep every rule
  std::vector<RankedLayout> layouts;  ///< those that fit, best first
  std::vector<ShownLayout> shown;
  std::vector<Exclusion> exclusions;  ///< most layouts first; with `layouts`, all examined
  std::string reason;  ///< what binds an empty or short list, or that none fits when simulated
  std::vector<SearchChange> way_out;  ///< where there is no best: what to ask instead
  std::optional<Estimate> nearest;    ///< where none fits: the legal one that misses by least
  /// The layout on the fewest GPUs that fits this job at all; where simulation refutes every
  /// layout, with memory held back by as much as the closed form misses.
  std::optional<Estimate> smallest;
  /// The first, unless the simulation says that it does not fit; null: nothing fits.
  const RankedLayout* best() const {
    return layouts.empty() || layouts.front().refuted() ? nullptr : &layouts.front();
  }
  /// Whether the simulation says that this layout, on the GPUs of the search, does not fit.
  bool refutes(const Layout& layout) const;
};

/// Why a layout of a job, on as many GPUs as it takes, cannot be simulated: the first reason, in a
/// few words; empty where it can be.
std::string why_not_simulated(const TrainingJob& job,
                              const Estimate& estimate,
                              const Assumptions& assumptions);

/// What is wrong with the axes of a search; pointers /axes/NAME.
std::vector<Diagnostic> axes_faults(const ModelConfig& model, const SearchAxes& axes);

/// Degrees are powers of two, tp 1 to 8, cp 1 to 32, pp 1 to 16, and ep any that divides the
/// experts. The result is the same for any number of threads. Faults: an axis' values (pointer
/// /axes/NAME).
Expected<SearchResult> search(const TrainingJob& job, const SearchOptions& options);

/// Clusters up to this are looked at where nothing else is asked for.
inline constexpr std::int64_t kLargestCluster = 131'072;

/// The layout on the fewest GPUs, from `least_gpus` to `most_gpus`, that holds the job, by the
/// closed form; the faster of equals. Nothing when none does.
std::optional<Estimate> smallest_that_fits(const TrainingJob& job,
                                           const SearchAxes& axes,
                                           const Assumptions& assumptions,
                                           std::int64_t most_gpus = kLargestCluster,
                                           std::int64_t least_gpus = 1);

/// A change of a scenario, as --set makes it.
struct FittingChange {
  std::vector<std::string> settings;  ///< "parallelism.tp=8" each
  Estimate estimate;
};

/// What would let a scenario fit in memory that did not, on the same GPUs and for the same batch:
/// fewest settings first, then the fastest. The closed form is scaled to the simulated peak, in
/// bytes. Not every change is one that can be simulated.
std::vector<FittingChange> changes_that_fit(const Scenario& scenario, std::int64_t peak_bytes);

/// The same for the fewest GPUs, whatever the layout.
std::optional<Estimate> smallest_that_fits(const Scenario& scenario, std::int64_t peak_bytes);

}  // namespace foretrain
