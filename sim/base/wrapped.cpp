#include "sim/base/wrapped.h"

#include "sim/base/format.h"

#include <sstream>
#include <vector>

namespace foretrain {
namespace {

/// The words of a text; a number stays with the unit or noun behind it, and "(step" with its
/// number.
std::vector<std::string> single_words(const std::string& text) {
  std::vector<std::string> words;
  bool joins = false;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    if (joins) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
    const bool number = word.find_first_not_of("0123456789.,") == std::string::npos;
    joins = word == "(step" || (number && !joins);
  }
  return words;
}

/// What is not to be broken over lines: short items between dots, and single words otherwise.
std::vector<std::string> words_of(const std::string& text) {
  constexpr int kShort = 36;
  const std::string dot = " ·";
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t found = text.find(dot + " ", at);
    const std::size_t end = found == std::string::npos ? text.size() : found + dot.size();
    const std::string item = text.substr(at, end - at);
    if (display_width(item) <= kShort) {
      words.push_back(item);
    } else {
      const std::vector<std::string> single = single_words(item);
      words.insert(words.end(), single.begin(), single.end());
    }
    at = end + 1;
  }
  return words;
}

}  // namespace

std::string wrapped(const std::string& first, const std::string& text, int hang, int width) {
  std::string page;
  std::string line = first;
  bool empty = true;
  for (const std::string& word : words_of(text)) {
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      page += line + "\n";
      line = std::string(static_cast<std::size_t>(hang), ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return page + line + "\n";
}

}  // namespace foretrain
