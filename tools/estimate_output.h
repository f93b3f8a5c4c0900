#pragma once

#include "foretrain/estimate.h"
#include "foretrain/search.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

/// Faces of an estimate that estimate, search and plan share.
namespace foretrain {

/// Without a fraction, as long as JSON readers keep such an integer.
nlohmann::ordered_json whole_json(double value);

/// tp, cp, pp, dp, and what else is not 1 or not the default.
nlohmann::ordered_json layout_json(const Layout& layout);

/// mfu, step_time_s, memory_bytes and its parts, fits, recompute_layers, micro_batches, shares.
nlohmann::ordered_json estimate_json(const Estimate& estimate);

/// step_time_s, mfu, memory_bytes, fits; null where nothing was simulated.
nlohmann::ordered_json simulated_json(const std::optional<SimulatedLayout>& simulated);

/// Every assumption that the rules and the model use, in SI units, with the layout's own.
nlohmann::ordered_json assumptions_json(const Assumptions& assumptions,
                                        const Layout& layout,
                                        const ModelConfig& model);

/// "tp 4 · cp 2 · pp 2 · dp 4", and what else is not 1 or not the default.
std::string layout_text(const Layout& layout);

/// "compute 89 % · tensor comm 8 % · bubble 1 %": parts of at least half a percent.
std::string shares_text(const Estimate& estimate);

/// "recompute 24 of 40 layers", or nothing.
std::string recompute_text(const Estimate& estimate);

}  // namespace foretrain
