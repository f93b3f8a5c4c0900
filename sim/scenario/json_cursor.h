#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"
#include "sim/scenario/json_value.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// 2^53: every integer of a scenario fits a double exactly.
constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

/// Legal values of an integer, both ends included.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = kLargestInteger;
};
constexpr IntegerRange kPositive = {1, kLargestInteger};
constexpr IntegerRange kPositiveInt = {1, 2147483647};

/// Legal values of a number, both ends included.
struct NumberRange {
  double least = 0.0;
  double most = 1e18;
};

/// A place in a JSON text that knows its pointer. Reads never throw and never stop: each fault goes
/// to one list shared by all cursors of a text, and the target keeps its default.
///
///     JsonCursor root(value, "", faults);
///     root.read("seed", scenario.seed);
///     if (auto training = root.require("training")) { ... training->finish(); }
///     root.finish();                                 // what was not asked for is unknown
///
/// The value and the list must outlive the cursor.
class JsonCursor {
 public:
  JsonCursor(const JsonValue& value, std::string pointer, std::vector<Diagnostic>& faults)
      : value_(&value), pointer_(std::move(pointer)), faults_(&faults) {}

  const std::string& pointer() const { return pointer_; }
  const JsonValue& value() const { return *value_; }
  bool is_null() const { return value_->kind == JsonValue::Kind::kNull; }
  bool is_boolean() const { return value_->kind == JsonValue::Kind::kBoolean; }
  bool is_number() const {
    return value_->kind == JsonValue::Kind::kInteger || value_->kind == JsonValue::Kind::kNumber;
  }
  bool is_string() const { return value_->kind == JsonValue::Kind::kString; }
  bool is_array() const { return value_->kind == JsonValue::Kind::kArray; }
  bool is_object() const { return value_->kind == JsonValue::Kind::kObject; }

  /// Records a fault of this value.
  void fault(std::string message, std::string hint = "") const;
  std::vector<Diagnostic>& faults() const { return *faults_; }

  // This value as a type; nothing, with a fault recorded, when it is not one.
  std::optional<bool> boolean() const;
  std::optional<std::int64_t> integer(IntegerRange range = {}) const;
  std::optional<double> number(NumberRange range = {}) const;
  std::optional<std::string> string() const;  ///< not empty
  /// One of a closed set of words; the fault suggests the nearest.
  std::optional<std::string> choice(std::span<const std::string_view> words) const;
  std::optional<Duration> duration() const;
  std::optional<Bytes> bytes() const;
  std::optional<Bandwidth> bandwidth() const;
  std::optional<FlopRate> flop_rate() const;

  /// The elements; empty with a fault when this is not an array.
  std::vector<JsonCursor> elements() const;

  /// A fault, and false, unless this is an object.
  bool expect_object() const;

  /// A member, which counts as known from now on; nothing when absent.
  std::optional<JsonCursor> member(std::string_view key);

  /// The same; absence is a fault at the member's pointer.
  std::optional<JsonCursor> require(std::string_view key, std::string hint = "");

  // Members into targets. True when the member was there and right; else the target keeps its
  // value.
  bool read(std::string_view key, bool& target);
  bool read(std::string_view key, std::int64_t& target, IntegerRange range = {});
  bool read(std::string_view key, int& target, IntegerRange range = {0, 2147483647});
  bool read(std::string_view key, double& target, NumberRange range = {});
  bool read(std::string_view key, std::string& target);
  bool read(std::string_view key, std::string& target, std::span<const std::string_view> words);
  bool read(std::string_view key, Duration& target);
  bool read(std::string_view key, Bytes& target);
  bool read(std::string_view key, Bandwidth& target);
  bool read(std::string_view key, FlopRate& target);

  /// Marks keys as known without reading them.
  void ignore(std::span<const std::string_view> keys);

  /// Every key never asked for is a fault, with the nearest known one.
  void finish() const;

 private:
  void expected(std::string_view what) const;

  const JsonValue* value_;
  std::string pointer_;
  std::vector<Diagnostic>* faults_;
  std::vector<std::string> known_;
};

}  // namespace foretrain
