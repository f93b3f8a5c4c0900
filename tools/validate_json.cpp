#include "tools/validate_output.h"

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const ValidatedRow& row) {
  Json json = {{"id", row.id},
               {"split", row.split},
               {"source", row.source},
               {"gpu", row.gpu},
               {"dtype", row.dtype},
               {"measured_s", or_null(row.measured_s)},
               {"simulated_s", or_null(row.simulated_s)},
               {"error", or_null(row.error())},
               {"status", row.skipped ? "skipped" : "ok"},
               {"reason", row.skipped ? Json(to_string(*row.skipped)) : Json(nullptr)},
               {"detail", row.detail},
               {"assumed", row.assumed},
               {"layout", row.layout}};
  if (row.simulated_s) {
    json["memory_bytes"] = row.memory_peak;
    json["memory_capacity_bytes"] = row.memory_capacity;
    json["fits"] = to_string(row.fits);
  }
  if (row.fits_label) {
    json["fits_published"] = *row.fits_label ? "yes" : "no";
  }
  return json;
}

Json error_json(const ErrorScore& score) {
  return {{"n", score.n},
          {"mape", score.n > 0 ? Json(score.mape) : Json(nullptr)},
          {"median_ape", score.n > 0 ? Json(score.median_ape) : Json(nullptr)},
          {"bias", score.n > 0 ? Json(score.bias) : Json(nullptr)}};
}

void add_rank(const RankScore& rank, Json& json) {
  json["sweeps"] = rank.sweeps;
  json["kendall_tau"] = or_null(rank.kendall_tau);
  json["mean_regret"] = or_null(rank.mean_regret);
}

Json groups_json(const ValidationResult& result) {
  Json list = Json::array();
  for (const ValidationGroup& group : result.groups) {
    Json json = {{"source", group.source}, {"gpu", group.gpu}, {"dtype", group.dtype}};
    json.update(error_json(group.error));
    add_rank(group.rank, json);
    list.push_back(std::move(json));
  }
  return list;
}

Json sources_json(const ValidationResult& result) {
  Json list = Json::array();
  for (const SourceScore& source : result.sources) {
    Json json = {{"source", source.source}};
    json.update(error_json(source.error));
    add_rank(source.rank, json);
    list.push_back(std::move(json));
  }
  return list;
}

Json worst_json(const ValidationResult& result) {
  Json list = Json::array();
  for (const WorstRow& worst : result.worst) {
    Json terms = Json::array();
    for (const StepTerm& term : worst.terms) {
      terms.push_back({{"part", term.part}, {"time_s", term.time_s}, {"share", term.share}});
    }
    const ValidatedRow& row = result.rows[worst.row];
    list.push_back({{"id", row.id},
                    {"error", or_null(row.error())},
                    {"layout", row.layout},
                    {"terms", std::move(terms)},
                    {"assumed", row.assumed}});
  }
  return list;
}

}  // namespace

Json validation_json(const ValidationResult& result) {
  Json rows = Json::array();
  for (const ValidatedRow& row : result.rows) {
    rows.push_back(row_json(row));
  }
  Json reasons = Json::object();
  for (const SkipCount& count : result.reasons) {
    reasons[std::string(to_string(count.reason))] = count.rows;
  }
  Json json = {{"rows", std::move(rows)},
               {"groups", groups_json(result)},
               {"sources", sources_json(result)},
               {"n", result.rows.size()},
               {"simulated", result.simulated},
               {"skipped", result.skipped()},
               {"coverage", result.coverage()},
               {"complete", result.complete},
               {"complete_simulated", result.complete_simulated},
               {"coverage_of_complete", result.coverage_of_complete()},
               {"reasons", std::move(reasons)}};
  Json overall = error_json(result.overall);
  json["measured"] = overall["n"];
  overall.erase("n");
  json.update(overall);
  add_rank(result.rank, json);
  json["source_averaged"] = error_json(result.source_averaged);
  json["nothing_assumed"] = error_json(result.nothing_assumed);
  json["worst"] = worst_json(result);
  if (result.memory) {
    json["memory"] = {{"n", result.memory->n},
                      {"right", result.memory->right},
                      {"false_fit", result.memory->false_fit},
                      {"false_oom", result.memory->false_oom},
                      {"borderline", result.memory->borderline}};
  }
  return json;
}

}  // namespace foretrain
