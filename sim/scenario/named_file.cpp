#include "sim/scenario/named_file.h"

#include "sim/base/data_directory.h"
#include "sim/base/edit_distance.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace foretrain {
namespace fs = std::filesystem;

std::string resolve_path(const std::string& path, const std::string& base_directory) {
  std::error_code error;
  const fs::path beside = fs::path(base_directory) / path;
  const fs::path chosen = fs::exists(beside, error) ? beside : fs::path(path);
  const fs::path absolute = fs::absolute(chosen, error);
  return (error ? chosen : absolute).lexically_normal().string();
}

Expected<NamedFile> find_named_file(const std::string& name_or_path,
                                    std::string_view folder,
                                    std::string_view noun,
                                    const std::string& base_directory) {
  if (looks_like_path(name_or_path)) {
    const std::string path = resolve_path(name_or_path, base_directory);
    return NamedFile{path, fs::path(path).stem().string(), false};
  }
  const std::vector<std::string> names = preset_names(folder);
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    std::string hint = did_you_mean(name_or_path, names);
    if (hint.empty()) {
      for (const std::string& name : names) {
        hint += (hint.empty() ? "known: " : ", ") + name;
      }
    }
    return refuse(
        Diagnostic{"", "unknown " + std::string(noun) + " \"" + name_or_path + "\"", hint});
  }
  return NamedFile{preset_path(folder, name_or_path).string(), name_or_path, true};
}

}  // namespace foretrain
