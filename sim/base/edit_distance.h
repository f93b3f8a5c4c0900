#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// Levenshtein distance with adjacent transpositions counted as one edit, case ignored.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, when near enough to be a typing error (at most a third of the
/// word's length, at least 1, or one is a prefix of the other); ties go to the earlier candidate.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// `did you mean "x"?`, or "" when nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace foretrain
