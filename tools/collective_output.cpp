#include "tools/collective_output.h"

#include "tools/output.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

double algorithm_bandwidth(Bytes bytes, double time) {
  return time > 0 ? static_cast<double>(bytes.value) / time : 0.0;
}

std::string giga(double rate) {
  return fixed(rate / 1e9, 2);
}

std::string micro(double time) {
  return fixed(time * 1e6, time < 1e-3 ? 2 : 1);
}

std::string how(const CollectiveCost& cost) {
  const std::string protocol(cost.protocol);
  return std::string(cost.algorithm) + (protocol.empty() ? "" : ", " + protocol);
}

Json size_json(const CollectiveQuestion& question, Bytes bytes) {
  const CollectiveCost cost = question.cost(bytes);
  const double time = seconds(cost.total());
  return {{"op", question.op},
          {"bytes", bytes.value},
          {"ranks", question.shape.size},
          {"nodes", question.shape.nodes},
          {"algorithm", cost.algorithm},
          {"protocol", cost.protocol},
          {"time_s", time},
          {"latency_s", seconds(cost.latency)},
          {"algorithm_bandwidth", algorithm_bandwidth(bytes, time)},
          {"bus_bandwidth", question.bus(bytes, time)},
          {"limiting_link", question.limiting_link(cost)}};
}

std::string one_size(const CollectiveQuestion& question, Bytes bytes) {
  const CollectiveCost cost = question.cost(bytes);
  const double time = seconds(cost.total());
  const std::string link = question.limiting_link(cost);
  std::string text = "  " + with_commas(bytes.value) + " " + plural("byte", bytes.value) + " in " +
                     human_time(cost.total()) + ": " + how(cost) + "\n";
  text += "  algorithm bandwidth " + human_rate(algorithm_bandwidth(bytes, time)) +
          ", bus bandwidth " + human_rate(question.bus(bytes, time)) + "\n";
  text += "  of the time " + human_time(cost.latency) + " are start-up and hops, " +
          human_time(cost.inside) + " bytes inside nodes, " + human_time(cost.across) +
          " bytes between them\n";
  return text + (link.empty() ? "" : "  limiting link " + link + "\n");
}

std::string table(const CollectiveQuestion& question, const std::vector<Bytes>& sizes) {
  std::string text = "# " + pad("size", 16, true) + pad("time", 12, true) + pad("algbw", 10, true) +
                     pad("busbw", 10, true) + "  algorithm, protocol      limiting link\n";
  text += "# " + pad("(B)", 16, true) + pad("(us)", 12, true) + pad("(GB/s)", 10, true) +
          pad("(GB/s)", 10, true) + "\n";
  for (const Bytes bytes : sizes) {
    const CollectiveCost cost = question.cost(bytes);
    const double time = seconds(cost.total());
    text += "  " + pad(std::to_string(bytes.value), 16, true) + pad(micro(time), 12, true) +
            pad(giga(algorithm_bandwidth(bytes, time)), 10, true) +
            pad(giga(question.bus(bytes, time)), 10, true) + "  " + pad(how(cost), 25) +
            question.limiting_link(cost) + "\n";
  }
  return text;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Rows of a log that are not compared.
std::string untimed_text(const std::vector<std::int64_t>& sizes) {
  constexpr std::size_t kShown = 8;
  if (sizes.empty()) {
    return "";
  }
  std::string list;
  for (std::size_t at = 0; at < std::min(sizes.size(), kShown); ++at) {
    list += (at == 0 ? "" : ", ") + with_commas(sizes[at]);
  }
  const auto rows = static_cast<std::int64_t>(sizes.size());
  return wrapped("  left out  ",
                 std::to_string(rows) + " " + plural("row", rows) + " without a time above 0, of " +
                     list + (sizes.size() > kShown ? ", ..." : "") + " bytes",
                 12,
                 page_width());
}

}  // namespace

std::string collective_header(const CollectiveQuestion& question) {
  const GroupShape& shape = question.shape;
  std::string text = question.hardware.name + ": " + question.op + " of " +
                     with_commas(shape.size) + " " + plural("rank", shape.size);
  if (shape.nodes == 1) {
    text += " in one node";
  } else if (shape.even) {
    text += ", " + with_commas(shape.ranks_per_node) + " in each of " + with_commas(shape.nodes) +
            " nodes";
  } else {
    text += ", at most " + with_commas(shape.ranks_per_node) + " in each of " +
            with_commas(shape.nodes) + " nodes";
  }
  if (question.groups_beside > 0) {
    text += ", beside " + with_commas(question.groups_beside) + " other " +
            plural("group", question.groups_beside);
  }
  return text + "\n";
}

std::string collective_page(const CollectiveQuestion& question, const std::vector<Bytes>& sizes) {
  return collective_header(question) +
         (sizes.size() == 1 ? one_size(question, sizes.front()) : table(question, sizes));
}

Json collective_json(const CollectiveQuestion& question, const std::vector<Bytes>& sizes) {
  Json json = size_json(question, sizes.back());
  if (sizes.size() > 1) {
    json["rows"] = Json::array();
    for (const Bytes bytes : sizes) {
      json["rows"].push_back(size_json(question, bytes));
    }
  }
  return json;
}

std::string verdict_page(const CollectiveQuestion& question, const CollectiveVerdict& verdict) {
  std::string text = collective_header(question);
  text += "# " + pad("size", 16, true) + pad("measured", 12, true) + pad("model", 12, true) +
          pad("busbw", 10, true) + pad("model's", 10, true) + pad("share", 8, true) + "\n";
  text += "# " + pad("(B)", 16, true) + pad("(us)", 12, true) + pad("(us)", 12, true) +
          pad("(GB/s)", 10, true) + pad("(GB/s)", 10, true) + "\n";
  for (const ComparedSize& size : verdict.sizes) {
    const Bytes bytes{size.measured.bytes};
    const double measured = size.measured.seconds();
    const double model = seconds(size.model.total());
    text += "  " + pad(std::to_string(bytes.value), 16, true) + pad(micro(measured), 12, true) +
            pad(micro(model), 12, true) + pad(giga(question.bus(bytes, measured)), 10, true) +
            pad(giga(question.bus(bytes, model)), 10, true) + pad(percent(size.share, 0), 8, true) +
            (size.degraded ? "  degraded" : "") + "\n";
  }
  text += "  median share of the model's bandwidth " + percent(verdict.median_share, 0) + "\n";
  for (const std::string& finding : verdict.findings) {
    text += wrapped("  ", finding, 2, page_width());
  }
  return text + untimed_text(verdict.untimed);
}

Json verdict_json(const CollectiveQuestion& question, const CollectiveVerdict& verdict) {
  Json json = size_json(question, Bytes{verdict.sizes.back().measured.bytes});
  json["measured"] = Json::array();
  for (const ComparedSize& size : verdict.sizes) {
    const Bytes bytes{size.measured.bytes};
    const double measured = size.measured.seconds();
    json["measured"].push_back({{"bytes", bytes.value},
                                {"out_of_place_s", optional_json(size.measured.out_of_place_s)},
                                {"in_place_s", optional_json(size.measured.in_place_s)},
                                {"measured_s", measured},
                                {"measured_bus_bandwidth", question.bus(bytes, measured)},
                                {"time_s", seconds(size.model.total())},
                                {"algorithm", size.model.algorithm},
                                {"share", size.share},
                                {"degraded", size.degraded}});
  }
  json["median_share"] = verdict.median_share;
  json["findings"] = verdict.findings;
  json["untimed"] = verdict.untimed;
  return json;
}

}  // namespace foretrain
