#pragma once

#include "foretrain/diagnostic.h"

#include <string>
#include <string_view>

namespace foretrain {

/// A file that a user named: a preset of a data folder, or a path.
struct NamedFile {
  std::string path;
  std::string stem;  ///< of the file; for a preset its name
  bool preset = false;
};

/// Where `name_or_path` leads: a preset of `folder` (an unknown one is a fault with a suggestion
/// that calls it a `noun`), or a path, relative to `base_directory` if a file is there and to the
/// working directory otherwise. Paths come back absolute. Pointers are "".
Expected<NamedFile> find_named_file(const std::string& name_or_path,
                                    std::string_view folder,
                                    std::string_view noun,
                                    const std::string& base_directory);

/// The absolute path of a file a text refers to, by the same rule.
std::string resolve_path(const std::string& path, const std::string& base_directory);

}  // namespace foretrain
