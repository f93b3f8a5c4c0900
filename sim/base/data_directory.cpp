#include "sim/base/data_directory.h"

#include <algorithm>
#include <system_error>

namespace foretrain {
namespace fs = std::filesystem;

fs::path data_directory() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "foretrain";
    if (fs::is_directory(installed / "topologies", error)) {
      return installed;
    }
  }
  return FORETRAIN_SOURCE_DATA;
}

bool looks_like_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json") ||
         text.ends_with(".csv");
}

fs::path preset_path(std::string_view folder, std::string_view name) {
  return data_directory() / folder / (std::string(name) + ".json");
}

std::vector<std::string> preset_names(std::string_view folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(data_directory() / folder, error)) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace foretrain
