#pragma once

#include "foretrain/diagnostic.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// An element of an XML text, with its place in the tree.
struct NcclElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::optional<std::size_t> parent;  ///< index of an earlier element
  int depth = 0;
  std::int64_t line = 0;

  std::string attribute(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
};

/// The elements under <system>, in the text's order. Refused: what is not XML, a document type,
/// more than 64 levels, 100,000 elements or 64 attributes of one.
Expected<std::vector<NcclElement>> read_nccl_elements(std::string_view text);

}  // namespace foretrain
