#include "tools/scenario_inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

namespace fs = std::filesystem;

/// Adds what a text names, where a file is there.
void add_file(const fs::path& folder, const std::string& text, std::vector<std::string>& files) {
  std::error_code error;
  for (const fs::path& path : {fs::path(text), folder / text}) {
    if (!text.empty() && fs::is_regular_file(path, error)) {
      files.push_back(fs::absolute(path, error).string());
    }
  }
}

void add_strings(const nlohmann::json& value,
                 const fs::path& folder,
                 std::vector<std::string>& files) {
  if (value.is_string()) {
    add_file(folder, value.get<std::string>(), files);
  }
  for (const auto& member : value.is_structured() ? value : nlohmann::json::array()) {
    add_strings(member, folder, files);
  }
}

}  // namespace

std::vector<std::string> scenario_inputs(const std::string& scenario,
                                         const std::vector<std::string>& overrides) {
  std::vector<std::string> files = {scenario};
  const fs::path folder = fs::path(scenario).parent_path();
  std::ifstream file(scenario);
  if (file) {
    const nlohmann::json text = nlohmann::json::parse(file, nullptr, false);
    add_strings(text, folder, files);
  }
  for (const std::string& entry : overrides) {
    const std::string value = entry.substr(std::min(entry.find('=') + 1, entry.size()));
    const nlohmann::json json = nlohmann::json::parse(value, nullptr, false);
    add_strings(json.is_discarded() ? nlohmann::json(value) : json, folder, files);
  }
  return files;
}

}  // namespace foretrain
