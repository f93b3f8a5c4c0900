#include "tests/tidy/source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace foretrain::tidy {
namespace {

namespace fs = std::filesystem;

bool is_text(const fs::path& path) {
  static const std::set<std::string> kSuffixes = {
      ".h", ".cpp", ".md", ".txt", ".cmake", ".in", ".sh", ".json", ".csv", ""};
  return kSuffixes.contains(path.extension().string());
}

bool is_skipped(const fs::path& directory) {
  const std::string name = directory.filename().string();
  return name.starts_with("build") || name == ".git" || name == ".cache";
}

SourceFile read_file(const fs::path& root, const fs::path& path) {
  SourceFile file;
  file.path = fs::relative(path, root).generic_string();
  std::ifstream stream(path, std::ios::binary);
  file.text.assign(std::istreambuf_iterator<char>(stream), {});
  file.lines = split_lines(file.text);
  if (file.is_cpp()) {
    file.code = without_comments_and_literals(file.text);
    file.code_lines = split_lines(file.code);
  }
  return file;
}

std::vector<SourceFile> read_tree() {
  const fs::path root = FORETRAIN_SOURCE_DIR;
  std::vector<SourceFile> files;
  fs::recursive_directory_iterator entry(root);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && is_skipped(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && is_text(entry->path()) &&
               entry->path().filename() != ".git") {
      files.push_back(read_file(root, entry->path()));
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

/// Where a literal or comment that starts at `i` ends (one past), or `i` if none starts there.
std::size_t end_of_blank(std::string_view text, std::size_t i) {
  const auto find = [&](std::string_view what, std::size_t from) {
    const std::size_t at = text.find(what, from);
    return at == std::string_view::npos ? text.size() : at + what.size();
  };
  if (text.substr(i).starts_with("//")) {
    return std::min(text.find('\n', i), text.size());
  }
  if (text.substr(i).starts_with("/*")) {
    return find("*/", i + 2);
  }
  if (text.substr(i).starts_with("R\"")) {
    const std::size_t open = text.find('(', i);
    const std::string close = ")" + std::string(text.substr(i + 2, open - i - 2)) + "\"";
    return find(close, open);
  }
  const char quote = text[i];
  const bool digit_separator =
      quote == '\'' && i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0;
  if ((quote != '"' && quote != '\'') || digit_separator) {
    return i;
  }
  for (std::size_t j = i + 1; j < text.size(); ++j) {
    if (text[j] == '\\') {
      ++j;
    } else if (text[j] == quote) {
      return j + 1;
    }
  }
  return text.size();
}

/// What stands between the last ';', '{' or '}', or the last preprocessor line, and an opening
/// brace.
std::string_view head_before(std::string_view code, std::size_t brace) {
  const std::size_t last =
      brace == 0 ? std::string_view::npos : code.find_last_of(";{}", brace - 1);
  const std::size_t from = last == std::string_view::npos ? 0 : last + 1;
  std::string_view head = code.substr(from, brace - from);
  if (const std::size_t hash = head.rfind('#'); hash != std::string_view::npos) {
    head.remove_prefix(std::min(head.find('\n', hash), head.size()));
  }
  const std::size_t first = head.find_first_not_of(" \n");
  return first == std::string_view::npos ? std::string_view() : head.substr(first);
}

bool opens_a_function(std::string_view head) {
  return head.empty() || head.front() == ',' || head.find('(') != std::string_view::npos;
}

bool opens_a_scope(std::string_view head) {
  for (const std::string_view word : {"namespace", "struct", "class", "union", "enum", "extern"}) {
    if (head.starts_with(word)) {
      return true;
    }
  }
  return head.starts_with("template") && !opens_a_function(head);
}

/// The words of a text with nothing but letters, digits, '_', ':', '<' and '>' in them.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool joins = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("_:<>").find(c) != std::string_view::npos;
    if (joins) {
      word.push_back(c);
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) {
    words.push_back(word);
  }
  return words;
}

/// The type whose definition a head begins; "" if it begins something else.
std::string type_in(std::string_view head) {
  static const std::set<std::string> kPrefixes = {"struct", "class", "union", "enum", "nodiscard"};
  if (head.starts_with("template")) {
    const std::size_t end = head.find(">\n");
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 2);
  }
  const std::vector<std::string> words = words_of(head);
  if (words.empty() || words.front() == "nodiscard" || !kPrefixes.contains(words.front())) {
    return "";
  }
  const auto name = std::ranges::find_if(
      words, [](const std::string& word) { return !kPrefixes.contains(word); });
  return name == words.end() || *name == ":" ? "" : *name;
}

std::size_t matching_brace(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    depth += code[i] == '{' ? 1 : code[i] == '}' ? -1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  return code.size();
}

}  // namespace

const std::vector<SourceFile>& source_tree() {
  static const std::vector<SourceFile> kFiles = read_tree();
  return kFiles;
}

const SourceFile& source_file(std::string_view path) {
  static const SourceFile kNone;
  const auto& files = source_tree();
  const auto found = std::ranges::find(files, path, &SourceFile::path);
  if (found == files.end()) {
    ADD_FAILURE() << path << " is missing";
    return kNone;
  }
  return *found;
}

std::string without_comments_and_literals(std::string_view text) {
  std::string code(text);
  bool include_line = false;
  std::size_t i = 0;
  while (i < text.size()) {
    if (i == 0 || text[i - 1] == '\n') {
      include_line = text.substr(i).starts_with("#include");
    }
    const std::size_t end = include_line ? i : end_of_blank(text, i);
    for (std::size_t j = i; j < end; ++j) {
      code[j] = text[j] == '\n' ? '\n' : ' ';
    }
    i = std::max(end, i + 1);
  }
  return code;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<FunctionExtent> functions_in(std::string_view code) {
  std::vector<FunctionExtent> functions;
  const auto line_of = [&](std::size_t at) {
    return static_cast<int>(std::ranges::count(code.substr(0, at), '\n')) + 1;
  };
  std::size_t i = code.find('{');
  while (i != std::string_view::npos) {
    const std::string_view head = head_before(code, i);
    if (opens_a_scope(head)) {
      i = code.find('{', i + 1);
      continue;
    }
    const std::size_t close = matching_brace(code, i);
    if (opens_a_function(head)) {
      const int first = line_of(i - head.size());
      functions.push_back({first, line_of(close) - first + 1});
    }
    i = close == code.size() ? std::string_view::npos : code.find('{', close);
  }
  return functions;
}

std::vector<TypeDefinition> types_in(std::string_view code) {
  std::vector<TypeDefinition> types;
  std::vector<std::string> scopes;  // with "" for what gives no name to other files
  for (std::size_t i = code.find_first_of("{}"); i != std::string_view::npos;
       i = code.find_first_of("{}", i + 1)) {
    if (code[i] == '}') {
      if (!scopes.empty()) {
        scopes.pop_back();
      }
      continue;
    }
    const std::string_view head = head_before(code, i);
    const std::vector<std::string> words = words_of(head);
    const bool visible = std::ranges::find(scopes, "") == scopes.end();
    if (const std::string type = type_in(head); visible && !type.empty()) {
      std::string name;
      for (const std::string& scope : scopes) {
        name += scope + "::";
      }
      const auto line = std::ranges::count(code.substr(0, i), '\n') + 1;
      types.push_back({name + type, static_cast<int>(line)});
    }
    const bool named_space = words.size() > 1 && head.starts_with("namespace ");
    scopes.push_back(named_space ? words[1] : "");
  }
  return types;
}

}  // namespace foretrain::tidy
