#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/program.h"
#include "foretrain/timeline.h"
#include "foretrain/units.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The answer to `run`, and its faces: text, JSON, Chrome trace.
namespace foretrain {

/// Where a step's time goes, mean over ranks, integer picoseconds; parts sum to step_time exactly.
struct Breakdown {
  Duration compute{}, recompute{}, tp{}, cp{}, ep{}, pp{}, dp{}, optimizer{}, bubble{}, imbalance{},
      straggler{}, other{};
  bool operator==(const Breakdown&) const = default;
};
inline constexpr int kBreakdownParts = 12;
struct BreakdownPart {
  std::string_view key;    ///< JSON key, e.g. "tp"
  std::string_view label;  ///< for people, e.g. "tensor comm"
  Duration Breakdown::*member;
};
const std::array<BreakdownPart, kBreakdownParts>& breakdown_parts();

/// One stage's memory on one rank, bytes.
struct StageMemory {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, activations = 0, logits = 0, buffers = 0;
  std::int64_t peak = 0;      ///< allocated, at its highest
  std::int64_t reserved = 0;  ///< with the allocator's band on top
};

struct StageReport {
  std::int32_t pp_rank = 0;
  std::int64_t layers = 0;
  bool embedding = false, head = false;
  Duration busy{};                  ///< mean over the stage's ranks, per step
  Duration idle{};                  ///< step - busy
  double bubble_ratio = 0;          ///< idle not spent in tp/cp/ep/dp waits, over the step
  std::int32_t in_flight_peak = 0;  ///< chunk units
  StageMemory memory;
};

enum class Fit { kYes, kBorderline, kNo };
std::string_view to_string(Fit fit);

struct NetworkReport {
  std::string group;  ///< "tp", "dp", "pp"
  std::int64_t size = 1;
  bool inside_node = true;
  Duration exposed{}, hidden{}, wait{};  ///< mean over ranks, per step
  std::int64_t bytes = 0;                ///< sent by a rank per step, mean
  double bus_bandwidth = 0;              ///< bytes per second while transferring
  std::string limiting_link;
};

/// A link of the machine over a step.
struct LinkReport {
  std::string id;
  double bytes = 0;        ///< carried in a step, one direction
  double bandwidth = 0;    ///< bytes per second
  double utilisation = 0;  ///< bytes over what the link could carry in a step
  std::string carries;     ///< the dimensions whose traffic it is: "dp, pp"
  std::int64_t alike = 1;  ///< links that carry the same
};

struct PathShare {
  std::string kind;
  Duration time{};
  double share = 0;
};
struct StragglerCost {
  std::string cause;  ///< "slow_gpu rank 17"
  Duration cost{};
  double share = 0;  ///< of the step
};
struct StepStatistics {
  std::int64_t n = 1;
  double mean_s = 0, stddev_s = 0, p5_s = 0, p50_s = 0, p95_s = 0, p99_s = 0, max_s = 0;
};

/// What happened to the run itself: how many ranks, tasks, how long. The only part that may differ
/// between two runs of the same input.
struct SimulationFacts {
  std::string evaluator;
  std::int64_t ranks_total = 0, ranks_simulated = 0, tasks = 0;
  double wall_s = 0;
  std::int64_t peak_rss_bytes = 0;
  std::uint64_t seed = 0;
  std::string version;
};

/// Labels the text report shows and a reader of JSON finds in "scenario".
struct ReportHeader {
  std::string model, cluster, precision, layout;  ///< ready to print
  std::string scenario_json;                      ///< the resolved scenario
  std::string name;                               ///< the scenario's, as it stands in the file
};

struct BlockedLine {
  std::string rank, task, waiting_for;
};

/// What one layer keeps of one micro-batch until its backward, on one rank.
struct LayerActivation {
  std::string tensor;  ///< "gate output"
  std::int64_t bytes = 0;
};

struct StepReport {
  ReportHeader header;
  bool deadlock = false;
  std::vector<BlockedLine> blocked;  ///< deadlock only; then no times below count
  std::string deadlock_grid;         ///< the schedule, the actions that cannot begin marked
  Duration step_time{};
  Duration isolated_step{};
  double tokens_per_s = 0, tokens_per_s_per_gpu = 0, tflops_per_gpu = 0;
  double mfu = 0, hfu = 0, mfu_causal = 0, mfu_full = 0, mfu_hardware = 0;
  double peak_tflops = 0;
  std::string peak_precision;  ///< what the peak is of: "bf16 dense", "fp8 dense"
  double flops_per_token = 0;
  std::string flops_convention;
  std::int64_t parameters = 0;
  std::int64_t gpus = 0;
  Breakdown breakdown;
  std::vector<StageReport> stages;
  std::vector<LayerActivation> layer_activations;
  std::int64_t memory_peak = 0;
  std::int32_t memory_peak_stage = 0;
  std::int64_t memory_capacity = 0;
  std::int64_t context_bytes = 0;  ///< beside the peak, for CUDA and NCCL
  Fit fits = Fit::kYes;
  std::vector<NetworkReport> network;
  std::vector<LinkReport> busiest_links;  ///< at most ten, most utilised first
  std::vector<PathShare> critical_path;
  std::vector<StragglerCost> stragglers;
  StepStatistics steps;
  std::vector<std::string> assumed;  ///< one line each
  std::vector<std::string> notes;    ///< e.g. the ideal bubble, which stage is slowest
  SimulationFacts simulation;
};

/// The critical path of the last measured step by kind of work; shares add up to the step. Every
/// instance must have been recorded; empty without records.
std::vector<PathShare> critical_path(const Program& program, const Timeline& timeline);

/// The JSON of contract section 3; numbers print so that they read back exactly.
std::string report_json(const StepReport& report);

struct TextStyle {
  int width = 100;
  bool color = false;
};
std::string report_text(const StepReport& report, const TextStyle& style = {});

/// A link in a trace.
struct LinkTrack {
  std::string id;
  double bandwidth = 0;                           ///< bytes per second
  std::vector<std::pair<Instant, double>> rates;  ///< bytes per second from then on
};

/// What a trace shows. The program the timeline came from must be the one given.
struct TraceOptions {
  std::string title;
  int steps = 1;
  std::string metadata_json;    ///< scenario, seed, version: an object
  std::int64_t gpu_memory = 0;  ///< deviceProperties
  std::string gpu_name;
  std::int64_t world_size = 1;
  /// Ranks per group of each group kind; needed of a folded program, whose groups hold classes.
  std::vector<std::int64_t> group_sizes;
  std::vector<LinkTrack> links;  ///< each a counter track
};

/// Bytes a trace of these ranks and steps will take uncompressed, within a few percent.
std::int64_t predict_trace_bytes(const Program& program,
                                 const std::vector<std::int32_t>& instances,
                                 int steps);

/// Trace Event JSON in Kineto's conventions (pid = rank, tid = stream), as text.
std::string chrome_trace(const Program& program,
                         const Timeline& timeline,
                         const TraceOptions& options);

/// One run of several in a trace.
struct TracePart {
  const Program* program = nullptr;
  const Timeline* timeline = nullptr;
  std::string label;                      ///< stands before its ranks' names
  std::vector<std::int64_t> group_sizes;  ///< as in TraceOptions
};

/// Several runs in one trace, one below the other, each from its own zero: pid = place of the part
/// x (the least power of ten that is at least world_size) + rank.
std::string chrome_trace(const std::vector<TracePart>& parts, const TraceOptions& options);

/// The same slices in speedscope's own format (.speedscope.json): under half the size, equal
/// kernels merge in its views, and times are integers, which no rounding makes overlap.
std::string speedscope_profile(const Program& program,
                               const Timeline& timeline,
                               const TraceOptions& options);

/// Writes text to a file, gzip when the name ends in .gz. Faults: kFile.
Expected<bool> write_text_file(const std::string& path, const std::string& text);

}  // namespace foretrain
