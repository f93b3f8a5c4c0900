#include "foretrain/flow_list.h"
#include "foretrain/quantity.h"
#include "sim/scenario/json_cursor.h"

#include <map>

namespace foretrain {
namespace {

constexpr std::string_view kSizeHint = "e.g. \"1 GiB\", or bare bytes";

Bytes read_size(const JsonCursor& at) {
  if (at.is_number()) {
    return Bytes{at.integer().value_or(0)};
  }
  if (!at.is_string()) {
    at.fault("must be a number of bytes or a text with a unit", std::string(kSizeHint));
    return {};
  }
  const Expected<Bytes> size = parse_size(at.value().text);
  if (!size) {
    at.fault(size.error().list.front().message, size.error().list.front().hint);
    return {};
  }
  return *size;
}

std::optional<std::int64_t> require_rank(JsonCursor& entry, std::string_view key) {
  const std::optional<JsonCursor> at = entry.require(key, "a rank, e.g. 0");
  return at ? at->integer() : std::nullopt;
}

FlowRequest read_flow(JsonCursor& entry, std::map<std::string, std::string>& places) {
  FlowRequest flow;
  if (!entry.expect_object()) {
    return flow;
  }
  if (const std::optional<JsonCursor> at = entry.require("id", "e.g. \"a\"")) {
    flow.id = at->string().value_or("");
    const auto [place, first] = places.emplace(flow.id, at->pointer());
    if (!first && !flow.id.empty()) {
      at->fault("\"" + flow.id + "\" is taken by " + place->second, "give each flow its own id");
    }
  }
  const std::optional<std::int64_t> source = require_rank(entry, "source");
  const std::optional<std::int64_t> destination = require_rank(entry, "destination");
  if (source && source == destination) {
    entry.member("destination")
        ->fault("rank " + std::to_string(*source) + " sends to itself",
                "such a flow crosses no link: leave it out");
  }
  flow.source = source.value_or(0);
  flow.destination = destination.value_or(0);
  if (const std::optional<JsonCursor> at = entry.require("bytes", std::string(kSizeHint))) {
    flow.bytes = read_size(*at);
  }
  entry.read("start", flow.start);
  entry.finish();
  return flow;
}

}  // namespace

Expected<std::vector<FlowRequest>> read_flows(const std::string& path) {
  const Expected<JsonValue> text = read_json_file(path);
  if (!text) {
    return tl::unexpected<Faults>(text.error());
  }
  std::vector<Diagnostic> faults;
  std::vector<FlowRequest> flows;
  JsonCursor root(*text, "", faults);
  const std::string hint = "a list of {\"id\", \"source\", \"destination\", \"bytes\", \"start\"}";
  if (root.expect_object()) {
    if (const std::optional<JsonCursor> list = root.require("flows", hint)) {
      std::map<std::string, std::string> places;
      for (JsonCursor& entry : list->elements()) {
        flows.push_back(read_flow(entry, places));
      }
      if (list->is_array() && flows.empty()) {
        list->fault("names none", hint);
      }
    }
    root.finish();
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return flows;
}

}  // namespace foretrain
