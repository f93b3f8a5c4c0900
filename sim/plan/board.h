#pragma once

#include "foretrain/plan.h"
#include "sim/estimate/sizes.h"

#include <cstdint>
#include <string>

namespace foretrain {

/// Stands in a step's text for the number of the step "Measure".
inline constexpr const char* kMeasureIt = "measure it (step @)";

/// What is known, and what is decided so far.
struct Board {
  const TrainingJob& job;
  const PlanOptions& options;
  const Assumptions& given;
  Estimator estimator;
  Estimator::Sizes sizes;
  SearchResult found;       ///< every layout by the closed form
  Layout layout;            ///< decided so far: degrees still open are 1, dp is what they leave
  std::int64_t spread = 1;  ///< ep that steps before the experts' count on
  std::vector<Estimate> offered;  ///< what steps say might be faster, to be measured
  std::vector<Estimate> refused;  ///< those that do not fit when simulated
  Plan plan;
};

Board make_board(const TrainingJob& job, const PlanOptions& options, SearchResult found);

// --- sizes ---------------------------------------------------------------------------------------

double usable_bytes(const Board& board);         ///< of a GPU
double bytes_per_parameter(const Board& board);  ///< weights, gradients, optimizer
std::int64_t node_size(const Board& board);

/// Whether a tp divides what it splits, up to the node.
bool tp_is_legal(const Board& board, std::int64_t tp);

/// Whether a pipeline of `pp` stages, each of `ranks` GPUs, exists here.
bool pp_is_legal(const Board& board, std::int64_t ranks, std::int64_t pp);

/// The layout with these degrees; they divide the GPUs. dp and layers follow.
Layout layout_with(
    const Board& board, std::int64_t tp, std::int64_t cp, std::int64_t pp, std::int64_t ep);

/// Weights, gradients and sharded optimizer of a GPU, and the same as an expression.
double sharded_states(const Board& board, const Layout& layout);
std::string sharded_states_text(const Board& board, const Layout& layout);

/// What `layers` layers keep of one micro-batch, all of it or only inputs; and as expressions, the
/// layers given as text.
double kept_bytes(const Board& board, const Layout& layout, double layers);
double recomputed_bytes(const Board& board, const Layout& layout, double layers);
std::string kept_text(const Board& board, const Layout& layout, const std::string& layers);
std::string recomputed_text(const Board& board, const Layout& layout, const std::string& layers);

/// Bytes a token keeps in the mean layer, over all of tp: 34 h where no layer has experts.
double kept_per_token(const Board& board, const Layout& layout);

/// Whether two are one layout, recomputed layers included.
bool same_plan(const Estimate& a, const Estimate& b);

/// Whether it was simulated and did not fit.
bool is_refused(const Board& board, const Estimate& estimate);

/// What a scenario of the layout is refused for; empty where it is legal.
std::vector<Diagnostic> layout_faults(const Board& board, const Layout& layout);

/// The scenario file of the layout, and its name.
std::string plan_scenario(const Board& board, const Estimate& estimate);

/// "tp 8 · cp 1 · pp 8 · dp 16", and ep where it is not 1.
std::string degrees_text(const Layout& layout);

/// "8,192 tokens", "1,024 GPUs".
std::string count_text(std::int64_t count, const std::string& noun);
std::string count_text(double whole, const std::string& noun);

// --- steps, in order; each adds one to the plan and decides its degree ---------------------------

void decide_states(Board& board);
void decide_replica(Board& board);
void decide_tensor(Board& board);
void decide_pipeline(Board& board);
void decide_activations(Board& board);
void decide_context(Board& board);
void decide_data(Board& board);       ///< also settles what is legal: the estimate and `feasible`
void settle_simulated(Board& board);  ///< adds a step only where the simulation does not fit
void decide_micro_batches(Board& board);
void decide_balance(Board& board);
void decide_measure(Board& board);
void explain_nothing_fits(Board& board);
void reckon_time(Board& board);
void add_deadline(const Board& board, TrainingTime& time, PlanStep& step);

}  // namespace foretrain
