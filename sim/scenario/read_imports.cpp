#include "foretrain/imports.h"
#include "sim/scenario/json_value.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace foretrain {
namespace {

template <typename T>
Expected<Import> as_import(Expected<T> read) {
  if (!read) {
    return tl::unexpected<Faults>(std::move(read.error()));
  }
  return Import(std::move(*read));
}

constexpr const char kKinds[] =
    "a topology is JSON, the text of ibnetdiscover or nvidia-smi topo -m, or NCCL's <system> file";

/// What no reader takes for text.
std::optional<Diagnostic> no_text(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Diagnostic{"", "the file is empty", kKinds};
  }
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return Diagnostic{"", "the file is UTF-16", "save it as UTF-8"};
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    return Diagnostic{
        "", "line " + std::to_string(line) + ": a byte of value 0, which no text has", kKinds};
  }
  return std::nullopt;
}

/// A text that is neither JSON nor any of the others, by how it begins.
Diagnostic of_no_kind(std::string_view text) {
  constexpr std::size_t kShown = 40;
  text.remove_prefix(text.find_first_not_of(" \t\r\n"));
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  std::string shown;
  for (const char c : line.substr(0, kShown)) {
    shown += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
  }
  const std::string what = text.front() == '<' ? "XML without a <system>" : "of no kind known";
  return {
      "",
      "the file is " + what + "; it begins \"" + shown + (line.size() > kShown ? "..." : "") + "\"",
      kKinds};
}

}  // namespace

Expected<Import> read_import(const std::string& path) {
  const Expected<std::string> file = read_text_file(path);
  if (!file) {
    return tl::unexpected<Faults>(file.error());
  }
  std::string_view text = *file;
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);
  }
  if (std::optional<Diagnostic> fault = no_text(text)) {
    return refuse(*std::move(fault));
  }
  if (is_ibnetdiscover(text)) {
    return as_import(parse_ibnetdiscover(text));
  }
  if (is_nccl_topology(text)) {
    return as_import(parse_nccl_topology(text));
  }
  if (is_topo_matrix(text)) {
    return as_import(parse_topo_matrix(text));
  }
  if (text[text.find_first_not_of(" \t\r\n")] != '{') {
    return refuse(of_no_kind(text));
  }
  return Import();
}

}  // namespace foretrain
