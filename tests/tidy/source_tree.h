#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The repository as text, for tests about the text itself.
namespace foretrain::tidy {

struct SourceFile {
  std::string path;                ///< relative to the root, '/' between folders
  std::string text;                ///< as it is
  std::string code;                ///< C++ only: comments and literals blanked, lines kept
  std::vector<std::string> lines;  ///< of text
  std::vector<std::string> code_lines;

  bool is_header() const { return path.ends_with(".h"); }
  bool is_cpp() const { return path.ends_with(".cpp") || is_header(); }
  bool is_under(std::string_view folder) const {
    return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
  }
};

/// Every text file of the project, sorted by path; build trees and version control left out.
const std::vector<SourceFile>& source_tree();

/// A file of the tree; fails the test and gives an empty file if it is not there.
const SourceFile& source_file(std::string_view path);

/// C++ with comments, string and character literals replaced by spaces; newlines stay, and so do
/// #include lines.
std::string without_comments_and_literals(std::string_view text);

std::vector<std::string> split_lines(std::string_view text);

/// A function body found by counting braces.
struct FunctionExtent {
  int first_line = 0;  ///< from 1
  int lines = 0;
};
std::vector<FunctionExtent> functions_in(std::string_view code);

/// A type defined where other files can see its name: at namespace scope, no namespace unnamed.
struct TypeDefinition {
  std::string name;  ///< with its namespaces
  int line = 0;      ///< of its opening brace, from 1
};
std::vector<TypeDefinition> types_in(std::string_view code);

}  // namespace foretrain::tidy
