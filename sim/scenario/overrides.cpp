// --set a.b=c: the value is JSON if it parses as JSON, else a string.
#include "sim/scenario/sections.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::size_t kDeepestPath = 16;

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> words(1);
  for (const char c : path) {
    if (c == '.') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// JSON, or else a string. What opens as an object, an array or a quoted string is meant as JSON.
Expected<JsonValue> parse_or_string(const std::string& text) {
  Expected<JsonValue> parsed = parse_json(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (parsed || (first != std::string::npos &&
                 std::string_view("{[\"").find(text[first]) != std::string_view::npos)) {
    return parsed;
  }
  JsonValue value;
  value.kind = JsonValue::Kind::kString;
  value.text = text;
  return value;
}

/// Sections that a string may stand for: the key of the object that the string means.
std::string_view short_form_key(std::string_view pointer) {
  if (pointer == "/schedule" || pointer == "/stack") {
    return "name";
  }
  return pointer == "/training/dtype" ? "compute" : "";
}

/// Makes an object of a string in short form, so that a key of it can be set.
void expand_short_form(JsonValue& value, std::string_view key) {
  JsonValue object;
  object.kind = JsonValue::Kind::kObject;
  object.keys.emplace_back(key);
  object.items.push_back(std::move(value));
  value = std::move(object);
}

/// The place of one word inside `parent`, made if need be; nothing when there can be none.
JsonValue* step_into(JsonValue& parent, const std::string& word, std::string& why) {
  if (parent.kind == JsonValue::Kind::kArray) {
    const bool digits = !word.empty() && word.size() < 9 &&
                        word.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t index = digits ? std::stoul(word) : parent.items.size();
    if (index < parent.items.size()) {
      return &parent.items[index];
    }
    why = "has no element \"" + word + "\", only " + std::to_string(parent.items.size());
    return nullptr;
  }
  if (parent.kind != JsonValue::Kind::kObject) {
    why = "is " + std::string(kind_name(parent.kind)) + " and has no \"" + word + "\"";
    return nullptr;
  }
  if (JsonValue* found = parent.find(word)) {
    return found;
  }
  parent.keys.push_back(word);
  parent.items.emplace_back();
  return &parent.items.back();
}

void apply_one(JsonValue& text, const std::string& override, std::vector<Diagnostic>& faults) {
  const std::string named = "--set " + override.substr(0, 80);
  const std::size_t equals = override.find('=');
  if (equals == std::string::npos || equals == 0) {
    faults.push_back({"", named + ": must be PATH=VALUE", "e.g. --set parallelism.pp=8"});
    return;
  }
  JsonValue* at = &text;
  std::string pointer;
  const std::vector<std::string> words = split_path(override.substr(0, equals));
  if (words.size() > kDeepestPath) {
    faults.push_back({"", named + ": the path is too deep", ""});
    return;
  }
  Expected<JsonValue> value = parse_or_string(override.substr(equals + 1));
  if (!value) {
    for (const std::string& word : words) {
      pointer = child_pointer(pointer, word);
    }
    for (const Diagnostic& fault : value.error().list) {
      faults.push_back({pointer + fault.pointer, named + ": " + fault.message, fault.hint});
    }
    return;
  }
  for (const std::string& word : words) {
    if (at->kind == JsonValue::Kind::kNull && at != &text) {
      at->kind = JsonValue::Kind::kObject;
    }
    if (at->kind == JsonValue::Kind::kString && !short_form_key(pointer).empty()) {
      expand_short_form(*at, short_form_key(pointer));
    }
    std::string why;
    at = step_into(*at, word, why);
    if (at == nullptr) {
      const std::string parent = pointer.empty() ? "the scenario" : "it";
      faults.push_back({pointer, named + ": " + parent + " " + why, ""});
      return;
    }
    pointer = child_pointer(pointer, word);
  }
  *at = *std::move(value);
}

void erase_key(JsonValue& object, std::string_view key) {
  const auto found = std::find(object.keys.begin(), object.keys.end(), key);
  if (found != object.keys.end()) {
    object.items.erase(object.items.begin() + (found - object.keys.begin()));
    object.keys.erase(found);
  }
}

}  // namespace

void apply_overrides(JsonValue& text,
                     const std::vector<std::string>& overrides,
                     std::vector<Diagnostic>& faults) {
  constexpr std::string_view kDegrees[] = {
      "cluster.gpus", "parallelism.tp", "parallelism.cp", "parallelism.pp"};
  constexpr std::string_view kBatches[] = {"training.global_batch_size",
                                           "training.micro_batch_size"};
  constexpr std::string_view kDp[] = {"parallelism.dp"};
  const auto set = [&](std::span<const std::string_view> paths) {
    return std::any_of(overrides.begin(), overrides.end(), [&](const std::string& override) {
      const std::string_view path = std::string_view(override).substr(0, override.find('='));
      return std::find(paths.begin(), paths.end(), path) != paths.end();
    });
  };
  if (JsonValue* parallelism = text.find("parallelism")) {
    if (set(kDegrees)) {
      erase_key(*parallelism, "dp");
    }
    if (set(kDegrees) || set(kBatches) || set(kDp)) {
      erase_key(*parallelism, "micro_batches");
    }
  }
  for (const std::string& override : overrides) {
    apply_one(text, override, faults);
  }
}

}  // namespace foretrain
