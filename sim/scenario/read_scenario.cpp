#include "foretrain/scenario.h"
#include "sim/scenario/fabric_keys.h"
#include "sim/scenario/named_file.h"
#include "sim/scenario/read_model.h"
#include "sim/scenario/rules.h"
#include "sim/scenario/sections.h"

#include <algorithm>
#include <filesystem>

namespace foretrain {
namespace {

/// Everything a reading needs beside the text.
struct Reading {
  std::string base_directory;
  std::vector<Diagnostic>& faults;
  FaultKind kind = FaultKind::kBadInput;  ///< kFile once a file it refers to cannot be read
};

/// The faults of a file that a scenario refers to, at the place that refers to it.
void adopt(const JsonCursor& at, const Faults& faults, const std::string& file, Reading& reading) {
  for (const Diagnostic& fault : faults.list) {
    const std::string place = fault.pointer.empty() ? "" : fault.pointer + ": ";
    const bool named = faults.kind == FaultKind::kFile || file.empty() ||
                       fault.message.find(file) != std::string::npos;
    at.fault((named ? "" : file + ": ") + place + fault.message, fault.hint);
  }
  if (faults.kind == FaultKind::kFile) {
    reading.kind = FaultKind::kFile;
  }
}

/// A preset's name as it stands, a path made absolute; nothing with faults recorded.
std::optional<NamedFile> find_file(const JsonCursor& at,
                                   std::string_view folder,
                                   std::string_view noun,
                                   Reading& reading) {
  const std::optional<std::string> name = at.string();
  if (!name) {
    return std::nullopt;
  }
  const Expected<NamedFile> file = find_named_file(*name, folder, noun, reading.base_directory);
  if (!file) {
    adopt(at, file.error(), "", reading);
    return std::nullopt;
  }
  return *file;
}

void read_model_section(JsonCursor& at, Scenario& scenario, Reading& reading) {
  if (at.is_object()) {
    scenario.model = read_model_object(at);
    return;
  }
  if (!at.is_string()) {
    at.fault("must be a model's name, a path to a config.json, or an object of its fields",
             "e.g. \"llama3-8b\"");
    return;
  }
  const std::optional<NamedFile> file = find_file(at, "scenarios/models", "model", reading);
  if (!file) {
    return;
  }
  scenario.model_reference = file->preset ? file->stem : file->path;
  Expected<ModelConfig> model = read_model(scenario.model_reference);
  if (model) {
    scenario.model = *std::move(model);
  } else {
    adopt(at, model.error(), file->path, reading);
  }
}

void read_cluster(JsonCursor& section, ClusterSpec& cluster, Reading& reading) {
  if (!section.expect_object()) {
    return;
  }
  if (const auto at = section.require("topology", "e.g. \"dgx-h100-ndr400\"")) {
    if (const auto file = find_file(*at, "topologies", "topology", reading)) {
      cluster.topology = file->preset ? file->stem : file->path;
      Expected<TopologySpec> hardware = read_topology(cluster.topology);
      if (hardware) {
        cluster.hardware = *std::move(hardware);
      } else {
        adopt(*at, hardware.error(), file->path, reading);
      }
    }
  }
  if (auto at = section.member("fabric")) {
    read_fabric_overrides(*at, cluster.hardware);
  }
  if (const auto at = section.require("gpus", "e.g. 1024")) {
    cluster.gpus = at->integer(kPositive).value_or(0);
  }
  section.finish();
}

/// A section that may be left out.
template <typename Read>
void optional_section(JsonCursor& root, std::string_view key, Read read) {
  if (std::optional<JsonCursor> section = root.member(key)) {
    read(*section);
  }
}

void read_sections(JsonCursor& root, Scenario& scenario, StatedValues& stated, Reading& reading) {
  const std::string& base = reading.base_directory;
  root.read("name", scenario.name);
  if (auto at = root.require("model", "e.g. \"llama3-8b\"")) {
    read_model_section(*at, scenario, reading);
  }
  if (auto at = root.require("cluster", R"(e.g. {"topology": "dgx-h100-ndr400", "gpus": 1024})")) {
    read_cluster(*at, scenario.cluster, reading);
  }
  if (auto at = root.require("training",
                             R"(e.g. {"sequence_length": 8192, "global_batch_size": 2048})")) {
    read_training(*at, scenario.training, stated);
  }
  const auto section = [&](std::string_view key, auto read) { optional_section(root, key, read); };
  section("parallelism",
          [&](JsonCursor& at) { read_parallelism(at, scenario.parallelism, stated); });
  section("schedule", [&](JsonCursor& at) {
    if (!read_schedule(at, scenario.schedule, base)) {
      reading.kind = FaultKind::kFile;
    }
  });
  section("recompute", [&](JsonCursor& at) { read_recompute(at, scenario.recompute); });
  section("overlap", [&](JsonCursor& at) { read_overlap(at, scenario.overlap, stated); });
  section("network", [&](JsonCursor& at) { read_network(at, scenario.network); });
  section("costs", [&](JsonCursor& at) { read_costs(at, scenario.costs); });
  section("stack", [&](JsonCursor& at) { read_stack(at, scenario.stack); });
  section("perturbations",
          [&](JsonCursor& at) { read_perturbations(at, scenario.perturbations, base); });
  if (const auto at = root.member("seed")) {
    scenario.seed = static_cast<std::uint64_t>(at->integer().value_or(0));
  }
  root.finish();
}

/// A cluster that can be built as it was read: what is at fault of it are names of its parts and
/// keys that change nothing.
bool cluster_was_read(const std::vector<Diagnostic>& faults) {
  return std::all_of(faults.begin(), faults.end(), [](const Diagnostic& fault) {
    return !related(fault.pointer, "/cluster") ||
           within(fault.pointer, "/cluster/fabric/failed_links") ||
           within(fault.pointer, "/cluster/fabric/failed_nodes") ||
           fault.message.starts_with(kNoEffect);
  });
}

/// What is at fault already is not told once more.
void check_cluster_parts(const Scenario& scenario,
                         const ClusterCheck& check,
                         std::vector<Diagnostic>& faults) {
  if (!check || !cluster_was_read(faults)) {
    return;
  }
  const std::vector<Diagnostic> before = faults;
  for (Diagnostic& found : check(scenario)) {
    if (std::none_of(before.begin(), before.end(), [&found](const Diagnostic& fault) {
          return !fault.pointer.empty() && related(fault.pointer, found.pointer);
        })) {
      faults.push_back(std::move(found));
    }
  }
}

struct ReadingOptions {
  const std::vector<std::string>& overrides;
  const ScenarioWaivers& waived;
  const ClusterCheck& check;
};

Expected<Scenario> resolve(JsonValue text,
                           const std::string& name,
                           const std::string& base_directory,
                           const ReadingOptions& options) {
  std::vector<Diagnostic> faults;
  Reading reading{base_directory, faults};
  Scenario scenario;
  scenario.name = name;
  scenario.stack = stack_preset("megatron-2024").value_or(StackSpec{});
  scenario.overlap.contention = 1.0;
  StatedValues stated;
  apply_overrides(text, options.overrides, faults);
  JsonCursor root(text, "", faults);
  if (!root.is_object()) {
    root.expect_object();
    return refuse(std::move(faults));
  }
  read_sections(root, scenario, stated, reading);
  const bool modelled = !scenario.costs.constant && !scenario.costs.stated;
  if (!stated.contention && modelled) {
    scenario.overlap.contention.reset();
  }
  validate_scenario(scenario, stated, options.waived, faults);
  check_cluster_parts(scenario, options.check, faults);
  if (!faults.empty()) {
    return tl::unexpected<Faults>(Faults{std::move(faults), reading.kind});
  }
  return scenario;
}

}  // namespace

Expected<Scenario> parse_scenario(const std::string& text,
                                  const std::string& base_directory,
                                  const std::vector<std::string>& overrides,
                                  const ScenarioWaivers& waived,
                                  const ClusterCheck& check) {
  Expected<JsonValue> value = parse_json(text);
  if (!value) {
    return tl::unexpected<Faults>(std::move(value.error()));
  }
  return resolve(*std::move(value), "scenario", base_directory, {overrides, waived, check});
}

Expected<Scenario> read_scenario(const std::string& name_or_path,
                                 const std::vector<std::string>& overrides,
                                 const ScenarioWaivers& waived,
                                 const ClusterCheck& check) {
  const Expected<NamedFile> file = find_named_file(name_or_path, "scenarios", "scenario", ".");
  if (!file) {
    return tl::unexpected<Faults>(file.error());
  }
  const Expected<std::string> text = read_text_file(file->path);
  if (!text) {
    return tl::unexpected<Faults>(text.error());
  }
  Expected<JsonValue> value = parse_json(*text);
  if (!value) {
    return tl::unexpected<Faults>(std::move(value.error()));
  }
  const std::string folder = std::filesystem::path(file->path).parent_path().string();
  return resolve(*std::move(value), file->stem, folder, {overrides, waived, check});
}

}  // namespace foretrain
