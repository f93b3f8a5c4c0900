#include "foretrain/scenario.h"
#include "sim/base/data_directory.h"
#include "sim/base/edit_distance.h"
#include "sim/scenario/read_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace foretrain {

namespace {

constexpr std::string_view kFolder = "scenarios/models";

Expected<std::string> model_path(const std::string& name_or_path,
                                 const std::string& base_directory) {
  if (looks_like_path(name_or_path)) {
    const std::filesystem::path beside = std::filesystem::path(base_directory) / name_or_path;
    std::error_code error;
    return std::filesystem::exists(beside, error) ? beside.string() : name_or_path;
  }
  const std::vector<std::string> names = preset_names(kFolder);
  if (std::find(names.begin(), names.end(), name_or_path) != names.end())
    return preset_path(kFolder, name_or_path).string();
  std::string hint = did_you_mean(name_or_path, names);
  if (hint.empty()) {
    for (const std::string& name : names)
      hint += (hint.empty() ? "known: " : ", ") + name;
  }
  return refuse(Diagnostic{"", "unknown model \"" + name_or_path + "\"", hint});
}

/// config.json says nothing; its folder is the model's name.
std::string display_name(const std::filesystem::path& path) {
  if (path.stem() == "config" && path.has_parent_path() && path.parent_path().has_filename())
    return path.parent_path().filename().string();
  return path.stem().string();
}

}  // namespace

Expected<ModelConfig> read_model_reference(const std::string& name_or_path,
                                           const std::string& base_directory) {
  const Expected<std::string> path = model_path(name_or_path, base_directory);
  if (!path)
    return tl::unexpected<Faults>(path.error());
  const Expected<JsonValue> text = read_json_file(*path);
  if (!text)
    return tl::unexpected<Faults>(text.error());
  std::vector<Diagnostic> faults;
  JsonCursor root(*text, "", faults);
  ModelConfig model = read_config_object(root);
  if (!faults.empty()) {
    for (Diagnostic& fault : faults)
      fault.message = *path + ": " + fault.message;
    return refuse(std::move(faults));
  }
  if (model.name.empty())
    model.name = display_name(*path);
  return model;
}

Expected<ModelConfig> read_model(const std::string& name_or_path) {
  return read_model_reference(name_or_path, ".");
}

}  // namespace foretrain
