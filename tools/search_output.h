#pragma once

#include "foretrain/search.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

/// Faces of a search: JSON, and text for people.
namespace foretrain {

nlohmann::ordered_json search_json(const TrainingJob& job,
                                   const SearchOptions& options,
                                   const SearchResult& result);

/// How much of a result to show as text.
struct SearchPage {
  std::int64_t top = 5;  ///< rows of the table
  std::string next;      ///< the command to type next
};
std::string search_text(const TrainingJob& job,
                        const SearchOptions& options,
                        const SearchResult& result,
                        const SearchPage& page);

}  // namespace foretrain
