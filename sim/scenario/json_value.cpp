#include "sim/scenario/json_value.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostKeys = 4096;  // of one object; finding a key twice takes their square
constexpr std::size_t kLargestFile = std::size_t{64} << 20;

/// Builds the tree from nlohmann's events; its parser does not recurse, so depth is ours to limit.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TreeBuilder(std::string_view text) : text_(text) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    JsonValue leaf;
    leaf.kind = JsonValue::Kind::kBoolean;
    leaf.boolean = value;
    return add(std::move(leaf));
  }
  bool number_integer(number_integer_t value) override {
    JsonValue leaf;
    leaf.kind = JsonValue::Kind::kInteger;
    leaf.integer = value;
    leaf.number = static_cast<double>(value);
    return add(std::move(leaf));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return number_float(static_cast<double>(value), "");
    }
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    JsonValue leaf;
    leaf.kind = JsonValue::Kind::kNumber;
    leaf.number = value;
    return add(std::move(leaf));
  }
  bool string(string_t& value) override {
    JsonValue leaf;
    leaf.kind = JsonValue::Kind::kString;
    leaf.text = value;
    return add(std::move(leaf));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(JsonValue::Kind::kObject); }
  bool start_array(std::size_t /*size*/) override { return open(JsonValue::Kind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    JsonValue& object = open_.back();
    if (object.keys.size() == kMostKeys) {
      faults_.push_back({pointer(), "more than " + std::to_string(kMostKeys) + " keys", ""});
      return false;
    }
    if (object.find(value) != nullptr) {
      faults_.push_back({child_pointer(pointer(), value), "the key is given twice", ""});
    }
    object.keys.push_back(value);
    return true;
  }
  bool parse_error(std::size_t position,
                   const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string_view read = text_.substr(0, std::min(position, text_.size()));
    const std::string_view before = read.substr(0, read.empty() ? 0 : read.size() - 1);
    const std::size_t newline = before.rfind('\n');
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t column =
        newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
    std::string why = error.what();
    for (const std::string_view mark : {"] ", "column ", ": "}) {
      const std::size_t at = why.find(mark);
      if (at != std::string::npos) {
        why.erase(0, at + mark.size());
      }
    }
    faults_.push_back({"",
                       "not JSON: line " + std::to_string(line) + ", column " +
                           std::to_string(column) + ": " + why,
                       ""});
    return false;
  }

  JsonValue root;
  std::vector<Diagnostic> take_faults() { return std::move(faults_); }

 private:
  bool open(JsonValue::Kind kind) {
    if (open_.size() == kDeepest) {
      faults_.push_back(
          {pointer(), "nested more than " + std::to_string(kDeepest) + " levels deep", ""});
      return false;
    }
    open_.emplace_back();
    open_.back().kind = kind;
    return true;
  }
  bool close() {
    JsonValue done = std::move(open_.back());
    open_.pop_back();
    return add(std::move(done));
  }
  bool add(JsonValue value) {
    if (open_.empty()) {
      root = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }
  std::string pointer() const {
    std::string path;
    for (std::size_t depth = 0; depth + 1 < open_.size(); ++depth) {
      const JsonValue& parent = open_[depth];
      path = child_pointer(path,
                           parent.kind == JsonValue::Kind::kObject
                               ? parent.keys.back()
                               : std::to_string(parent.items.size()));
    }
    return path;
  }

  std::string_view text_;
  std::vector<JsonValue> open_;
  std::vector<Diagnostic> faults_;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  const auto index = static_cast<std::size_t>(found - keys.begin());
  return index < items.size() ? &items[index] : nullptr;
}

JsonValue* JsonValue::find(std::string_view key) {
  const auto found = std::find(keys.begin(), keys.end(), key);
  const auto index = static_cast<std::size_t>(found - keys.begin());
  return index < items.size() ? &items[index] : nullptr;
}

std::string_view kind_name(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBoolean:
      return "true or false";
    case JsonValue::Kind::kInteger:
    case JsonValue::Kind::kNumber:
      return "a number";
    case JsonValue::Kind::kString:
      return "a string";
    case JsonValue::Kind::kArray:
      return "an array";
    case JsonValue::Kind::kObject:
      return "an object";
  }
  return "";
}

Expected<JsonValue> parse_json(std::string_view text) {
  TreeBuilder builder(text);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  std::vector<Diagnostic> faults = builder.take_faults();
  if (!parsed || !faults.empty()) {
    return refuse(std::move(faults));
  }
  return std::move(builder.root);
}

Expected<std::string> read_text_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return refuse_file(path, "is a directory");
  }
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    return refuse_file(path, std::strerror(errno));
  }
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  std::size_t count = 0;
  while ((count = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
    text.append(block.data(), count);
    if (text.size() > kLargestFile) {
      return refuse_file(path, "larger than 64 MiB");
    }
  }
  if (std::ferror(file.get()) != 0) {
    return refuse_file(path, "cannot be read");
  }
  return text;
}

Expected<JsonValue> read_json_file(const std::string& path) {
  const Expected<std::string> text = read_text_file(path);
  if (!text) {
    return tl::unexpected<Faults>(text.error());
  }
  Expected<JsonValue> value = parse_json(*text);
  if (!value) {
    for (Diagnostic& fault : value.error().list) {
      fault.message = path + ": " + fault.message;
    }
  }
  return value;
}

std::string child_pointer(std::string_view pointer, std::string_view key) {
  std::string path(pointer);
  path += '/';
  for (const char c : key) {
    path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return path;
}

std::string json_number(double value) {
  return nlohmann::json(value).dump();
}

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace foretrain
