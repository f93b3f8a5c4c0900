#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// The folder that holds topologies/ and scenarios/: share/foretrain beside an installed program,
/// the source tree otherwise. Found from the program's own place, never from the working directory.
std::filesystem::path data_directory();

/// Whether a string is a path (has a '/' or a file suffix) rather than a preset's name.
bool looks_like_path(std::string_view text);

/// data_directory()/folder/NAME.json
std::filesystem::path preset_path(std::string_view folder, std::string_view name);

/// Stems of the *.json files in data_directory()/folder, sorted.
std::vector<std::string> preset_names(std::string_view folder);

}  // namespace foretrain
