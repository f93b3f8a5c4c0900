#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// A JSON text as a tree that keeps the order of its keys. Depth and size are limited.
struct JsonValue {
  enum class Kind { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;       ///< kInteger
  double number = 0.0;            ///< kInteger and kNumber
  std::string text;               ///< kString
  std::vector<JsonValue> items;   ///< kArray: elements; kObject: values
  std::vector<std::string> keys;  ///< kObject: beside items

  /// The value of a key, or null.
  const JsonValue* find(std::string_view key) const;
  JsonValue* find(std::string_view key);
};

/// "a string", "an object", ... for messages.
std::string_view kind_name(JsonValue::Kind kind);

/// Parses a text. Faults: not JSON (pointer "", line and column), nested too deeply, a key twice in
/// one object (pointer of the key).
Expected<JsonValue> parse_json(std::string_view text);

/// Reads a whole file; FaultKind::kFile when that is not possible.
Expected<std::string> read_text_file(const std::string& path);

/// read_text_file and parse_json; messages about the text name the file.
Expected<JsonValue> read_json_file(const std::string& path);

/// `pointer` extended by one key, escaped as RFC 6901 says.
std::string child_pointer(std::string_view pointer, std::string_view key);

/// A number as JSON prints it: the shortest text that reads back exactly.
std::string json_number(double value);

/// A text as JSON prints it, quotes included.
std::string json_string(const std::string& text);

}  // namespace foretrain
