#include "sim/base/edit_distance.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace foretrain {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool is_prefix(std::string_view shorter, std::string_view longer) {
  return shorter.size() >= 3 && shorter.size() < longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin(), [](char a, char b) {
           return lower(a) == lower(b);
         });
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> before(columns);
  std::vector<int> above(columns);
  std::vector<int> row(columns);
  for (std::size_t j = 0; j < columns; ++j) {
    above[j] = static_cast<int>(j);
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitute = above[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitute});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  const int limit = std::max(1, static_cast<int>(word.size()) / 3);
  std::optional<std::string> best;
  int best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (is_prefix(word, candidate) || is_prefix(candidate, word)) {
      distance = std::min(distance, limit);
    }
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::optional<std::string> found = nearest(word, candidates);
  return found ? "did you mean \"" + *found + "\"?" : "";
}

}  // namespace foretrain
