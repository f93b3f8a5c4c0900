#pragma once

#include "foretrain/search.h"
#include "sim/search/relax.h"
#include "sim/search/subject.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace foretrain {

/// A rule that a layout keeps or breaks; where it breaks several, the first in the table counts.
struct LayoutRule {
  bool (*broken)(const SearchSubject& subject, const Layout& layout);
  std::string (*name)(const SearchSubject& subject);  ///< of all layouts that break it
  std::string (*reason)(const SearchSubject& subject, const Layout& layout);  ///< with the numbers
  std::string_view way_out{};  ///< of the search, not of a layout; may be empty
  /// Changes the search so that a layout keeps this rule; null: nothing would.
  std::optional<SearchChange> (*relax)(AskedSearch& asked, const Layout& layout) = nullptr;
};
std::span<const LayoutRule> layout_rules();

/// How else the search could be asked so that layouts keep this rule; may be empty.
std::string_view way_out(const SearchSubject& subject, const LayoutRule& rule);

/// The place of the first rule that a layout breaks, or nothing.
std::optional<std::size_t> first_broken(const SearchSubject& subject, const Layout& layout);

/// Every rule that a layout breaks, a bit each. Nothing for what is no layout of its own, or whose
/// dp is not known.
std::optional<std::uint32_t> broken_rules(const SearchSubject& subject, const Layout& layout);

}  // namespace foretrain
