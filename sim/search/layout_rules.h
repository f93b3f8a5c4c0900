#pragma once

#include "foretrain/search.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace foretrain {

/// What the rules of a search ask about, beside the layout. The layout's dp is 0 where its other
/// degrees do not divide the GPUs.
struct SearchSubject {
  const TrainingJob& job;
  const SearchAxes& axes;
  const Assumptions& assumptions;
};

/// A rule that a layout keeps or breaks; where it breaks several, the first in the table counts.
struct LayoutRule {
  bool (*broken)(const SearchSubject& subject, const Layout& layout);
  std::string (*name)(const SearchSubject& subject);  ///< of all layouts that break it
  std::string (*reason)(const SearchSubject& subject, const Layout& layout);  ///< with the numbers
  std::string_view way_out{};  ///< of the search, not of a layout; may be empty
};
std::span<const LayoutRule> layout_rules();

/// How else the search could be asked so that layouts keep this rule; may be empty.
std::string_view way_out(const SearchSubject& subject, const LayoutRule& rule);

/// The place of the first rule that a layout breaks, or nothing.
std::optional<std::size_t> first_broken(const SearchSubject& subject, const Layout& layout);

}  // namespace foretrain
