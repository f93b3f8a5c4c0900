#pragma once

#include "foretrain/model_config.h"
#include "sim/scenario/json_cursor.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace foretrain {

/// Typed reads of a config.json, where null means "not there".
class ConfigFields {
 public:
  explicit ConfigFields(JsonCursor& cursor) : cursor_(cursor) {}

  JsonCursor& cursor() { return cursor_; }

  /// A member that is there and not null; marked as known.
  std::optional<JsonCursor> member(std::string_view key);

  /// A size that must be there; 0 after a fault.
  std::int64_t size(std::string_view key);

  /// A size that may be left out; `otherwise` then, 0 after a fault.
  std::int64_t size_or(std::string_view key, std::int64_t otherwise);

  /// A count that may be zero or left out.
  std::int64_t count_or(std::string_view key, std::int64_t otherwise);

  bool flag(std::string_view key, bool otherwise);

 private:
  JsonCursor& cursor_;
};

/// One model_type and how its fields are read.
struct ModelFamily {
  std::string_view type;
  void (*read)(ConfigFields& fields, ModelConfig& model);
};
std::span<const ModelFamily> model_families();

}  // namespace foretrain
