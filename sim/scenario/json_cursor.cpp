#include "sim/scenario/json_cursor.h"

#include "foretrain/quantity.h"
#include "sim/base/edit_distance.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// A value of the text for a message: short, quoted when it is a string.
std::string shown(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kBoolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::kInteger:
      return std::to_string(value.integer);
    case JsonValue::Kind::kNumber:
      return json_number(value.number);
    case JsonValue::Kind::kString:
      return "\"" + value.text.substr(0, 60) + "\"";
    default:
      return std::string(kind_name(value.kind));
  }
}

std::string range_text(IntegerRange range) {
  if (range.most == kLargestInteger) {
    return range.least == 1 ? "a positive integer, at most 2^53"
                            : "an integer from " + std::to_string(range.least) + " to 2^53";
  }
  return "an integer from " + std::to_string(range.least) + " to " + std::to_string(range.most);
}

/// A quantity's faults, moved to the cursor's place.
template <typename T>
std::optional<T> quantity(const JsonCursor& cursor,
                          Expected<T> (*parse)(std::string_view),
                          std::string_view example) {
  if (!cursor.is_string()) {
    const std::string hint = "write it with its unit, e.g. " + std::string(example);
    cursor.fault(cursor.is_number()
                     ? shown(cursor.value()) + " has no unit"
                     : "must be a quantity with a unit, not " + shown(cursor.value()),
                 hint);
    return std::nullopt;
  }
  const Expected<T> parsed = parse(cursor.value().text);
  if (!parsed) {
    const Diagnostic& fault = parsed.error().list.front();
    cursor.fault(fault.message, fault.hint);
    return std::nullopt;
  }
  return *parsed;
}

template <typename T>
bool store(const std::optional<T>& value, T& target) {
  if (value) {
    target = *value;
  }
  return value.has_value();
}

}  // namespace

void JsonCursor::fault(std::string message, std::string hint) const {
  faults_->push_back({pointer_, std::move(message), std::move(hint)});
}

void JsonCursor::expected(std::string_view what) const {
  fault("must be " + std::string(what) + ", not " + shown(*value_));
}

std::optional<bool> JsonCursor::boolean() const {
  if (!is_boolean()) {
    expected("true or false");
    return std::nullopt;
  }
  return value_->boolean;
}

std::optional<std::int64_t> JsonCursor::integer(IntegerRange range) const {
  const bool whole = is_number() &&
                     std::abs(value_->number) <= static_cast<double>(kLargestInteger) &&
                     std::nearbyint(value_->number) == value_->number;
  const std::int64_t integer = !whole ? 0
                               : value_->kind == JsonValue::Kind::kInteger
                                   ? value_->integer
                                   : static_cast<std::int64_t>(value_->number);
  if (!whole || integer < range.least || integer > range.most) {
    expected(range_text(range));
    return std::nullopt;
  }
  return integer;
}

std::optional<double> JsonCursor::number(NumberRange range) const {
  if (!is_number() || !(value_->number >= range.least && value_->number <= range.most)) {
    expected("a number from " + json_number(range.least) + " to " + json_number(range.most));
    return std::nullopt;
  }
  return value_->number;
}

std::optional<std::string> JsonCursor::string() const {
  if (!is_string() || value_->text.empty()) {
    expected("a string that is not empty");
    return std::nullopt;
  }
  return value_->text;
}

std::optional<std::string> JsonCursor::choice(std::span<const std::string_view> words) const {
  std::string list;
  for (const std::string_view word : words) {
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  if (!is_string()) {
    fault("must be a string, not " + shown(*value_), "one of: " + list);
    return std::nullopt;
  }
  if (std::find(words.begin(), words.end(), value_->text) == words.end()) {
    const std::vector<std::string> names(words.begin(), words.end());
    const std::string near = did_you_mean(value_->text, names);
    fault("unknown value " + shown(*value_), near.empty() ? "one of: " + list : near);
    return std::nullopt;
  }
  return value_->text;
}

std::optional<Duration> JsonCursor::duration() const {
  return quantity(*this, parse_duration, "\"5 us\"");
}
std::optional<Bytes> JsonCursor::bytes() const {
  return quantity(*this, parse_bytes, "\"80 GB\"");
}
std::optional<Bandwidth> JsonCursor::bandwidth() const {
  return quantity(*this, parse_bandwidth, "\"400 Gb/s\" or \"50 GB/s\"");
}
std::optional<FlopRate> JsonCursor::flop_rate() const {
  return quantity(*this, parse_flop_rate, "\"989 TFLOP/s\"");
}

std::vector<JsonCursor> JsonCursor::elements() const {
  std::vector<JsonCursor> cursors;
  if (!is_array()) {
    expected("an array");
    return cursors;
  }
  cursors.reserve(value_->items.size());
  for (std::size_t index = 0; index < value_->items.size(); ++index) {
    cursors.emplace_back(
        value_->items[index], child_pointer(pointer_, std::to_string(index)), *faults_);
  }
  return cursors;
}

bool JsonCursor::expect_object() const {
  if (!is_object()) {
    expected("an object");
  }
  return is_object();
}

std::optional<JsonCursor> JsonCursor::member(std::string_view key) {
  known_.emplace_back(key);
  const JsonValue* found = is_object() ? value_->find(key) : nullptr;
  if (found == nullptr) {
    return std::nullopt;
  }
  return JsonCursor(*found, child_pointer(pointer_, key), *faults_);
}

std::optional<JsonCursor> JsonCursor::require(std::string_view key, std::string hint) {
  std::optional<JsonCursor> found = member(key);
  if (!found && is_object()) {
    faults_->push_back({child_pointer(pointer_, key), "missing", std::move(hint)});
  }
  return found;
}

bool JsonCursor::read(std::string_view key, bool& target) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->boolean(), target);
}
bool JsonCursor::read(std::string_view key, std::int64_t& target, IntegerRange range) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->integer(range), target);
}
bool JsonCursor::read(std::string_view key, int& target, IntegerRange range) {
  std::int64_t wide = target;
  range.most = std::min<std::int64_t>(range.most, 2147483647);
  const bool good = read(key, wide, range);
  target = static_cast<int>(wide);
  return good;
}
bool JsonCursor::read(std::string_view key, double& target, NumberRange range) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->number(range), target);
}
bool JsonCursor::read(std::string_view key, std::string& target) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->string(), target);
}
bool JsonCursor::read(std::string_view key,
                      std::string& target,
                      std::span<const std::string_view> words) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->choice(words), target);
}
bool JsonCursor::read(std::string_view key, Duration& target) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->duration(), target);
}
bool JsonCursor::read(std::string_view key, Bytes& target) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->bytes(), target);
}
bool JsonCursor::read(std::string_view key, Bandwidth& target) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->bandwidth(), target);
}
bool JsonCursor::read(std::string_view key, FlopRate& target) {
  const std::optional<JsonCursor> at = member(key);
  return at && store(at->flop_rate(), target);
}

void JsonCursor::ignore(std::span<const std::string_view> keys) {
  known_.insert(known_.end(), keys.begin(), keys.end());
}

void JsonCursor::finish() const {
  for (const std::string& key : value_->keys) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      faults_->push_back({child_pointer(pointer_, key), "unknown key", did_you_mean(key, known_)});
    }
  }
}

}  // namespace foretrain
