#include "tools/compare_output.h"

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

std::string first_words(const Faults& faults) {
  return faults.list.empty() ? "" : faults.list.front().message;
}

void add_refusal(const ComparedRow& row, Json& json) {
  json["refused"] = first_words(row.faults);
  json["faults"] = Json::array();
  for (const Diagnostic& fault : row.faults.list) {
    json["faults"].push_back(
        {{"pointer", fault.pointer}, {"message", fault.message}, {"hint", fault.hint}});
  }
}

Json row_json(const ComparedRow& row, const ComparedRow* best) {
  Json json = {{"label", row.label}, {"schedule", row.schedule}, {"settings", row.settings}};
  if (!row.simulation) {
    add_refusal(row, json);
    return json;
  }
  const StepReport& report = row.simulation->report;
  json["ways"] = row.ways;
  json["fastest"] = &row == best;
  if (ended(row)) {
    const RowFigures figures = figures_of(report);
    json["bubble_share"] = figures.bubble_share;
    json["span_share"] = row.span_share ? Json(*row.span_share) : Json(nullptr);
    json["exposed_comm_s"] = seconds(figures.exposed_comm);
  }
  json.update(Json::parse(report_json(report)));
  return json;
}

}  // namespace

Json compare_json(const std::vector<ComparedRow>& rows, const std::string& baseline) {
  const ComparedRow* const best = fastest(rows);
  Json list = Json::array();
  for (const ComparedRow& row : rows) {
    list.push_back(row_json(row, best));
  }
  return {{"rows", std::move(list)},
          {"fastest", best == nullptr ? Json(nullptr) : Json(best->label)},
          {"why", compare_why(rows, baseline)}};
}

}  // namespace foretrain
