#include "tools/estimate_output.h"
#include "tools/search_axes.h"
#include "tools/search_output.h"

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using nlohmann::ordered_json;

/// A layout's degrees, then what the closed form says of it.
ordered_json judged(const Estimate& estimate) {
  ordered_json json = layout_json(estimate.layout);
  json.update(estimate_json(estimate));
  return json;
}

ordered_json ranked_json(const RankedLayout& ranked) {
  ordered_json json = {{"rank", ranked.rank}, {"closed_form_rank", ranked.closed_form_rank}};
  json.update(judged(ranked.estimate));
  json["simulated"] = simulated_json(ranked.simulated);
  if (!ranked.not_simulated.empty()) {
    json["not_simulated"] = ranked.not_simulated;
  }
  return json;
}

ordered_json shown_json(const ShownLayout& shown) {
  if (shown.layout) {
    return ranked_json(*shown.layout);
  }
  return {{"rank", nullptr},
          {"tp", shown.tp},
          {"cp", shown.cp},
          {"pp", shown.pp},
          {"reason", shown.reason}};
}

/// Says so where a layout that is offered cannot be simulated.
void add_not_simulated(const TrainingJob& job,
                       const SearchOptions& options,
                       const Estimate& estimate,
                       ordered_json& json) {
  const std::string why = why_not_simulated(job, estimate, options.assumptions);
  if (!why.empty()) {
    json["not_simulated"] = why;
  }
}

ordered_json nearest_json(const TrainingJob& job,
                          const SearchOptions& options,
                          const std::optional<Estimate>& nearest) {
  if (!nearest) {
    return nullptr;
  }
  ordered_json json = judged(*nearest);
  add_not_simulated(job, options, *nearest, json);
  json["shortfall_bytes"] = whole_json(nearest->memory.total() - nearest->memory_limit);
  return json;
}

ordered_json smallest_json(const TrainingJob& job,
                           const SearchOptions& options,
                           const std::optional<Estimate>& smallest) {
  if (!smallest) {
    return nullptr;
  }
  const Layout& layout = smallest->layout;
  ordered_json json = {{"gpus", layout.tp * layout.cp * layout.pp * layout.dp}};
  json.update(judged(*smallest));
  add_not_simulated(job, options, *smallest, json);
  return json;
}

}  // namespace

ordered_json search_json(const TrainingJob& job,
                         const SearchOptions& options,
                         const SearchResult& result) {
  ordered_json json = {{"model", job.model_reference},
                       {"topology", job.topology},
                       {"gpus", job.gpus},
                       {"sequence_length", job.sequence_length},
                       {"global_batch_size", job.global_batch_size},
                       {"examined", result.examined},
                       {"legal", result.legal},
                       {"feasible", result.layouts.size()}};
  json["layouts"] = ordered_json::array();
  for (const RankedLayout& ranked : result.layouts) {
    json["layouts"].push_back(ranked_json(ranked));
  }
  json["shown"] = ordered_json::array();
  for (const ShownLayout& shown : result.shown) {
    json["shown"].push_back(shown_json(shown));
  }
  json["reason"] = result.reason;
  json["way_out"] = ordered_json::array();
  for (const SearchChange& change : result.way_out) {
    json["way_out"].push_back({{"option", change.option}, {"value", change.value}});
  }
  json["exclusions"] = ordered_json::array();
  for (const Exclusion& exclusion : result.exclusions) {
    json["exclusions"].push_back(
        {{"rule", exclusion.rule}, {"layouts", exclusion.layouts}, {"way_out", exclusion.way_out}});
  }
  json["nearest"] = nearest_json(job, options, result.nearest);
  json["smallest_cluster"] = smallest_json(job, options, result.smallest);
  json["axes"] = axes_json(options.axes);
  json["assumptions"] = assumptions_json(options.assumptions, Layout{}, job.model);
  for (const char* const axis : {"sharding", "vpp", "recompute_layers"}) {
    json["assumptions"].erase(axis);  // the axes say
  }
  return json;
}

}  // namespace foretrain
