#include "tools/commands.h"
#include "tools/output.h"
#include "tools/scenario_inputs.h"

#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {

int cmd_check(int argc, char** argv) {
  CLI::App app("Reads and validates a scenario; every fault at once.", "check");
  std::string name;
  std::vector<std::string> overrides;
  std::string json_target;
  add_scenario_options(app, name, overrides);
  add_json_option(app, json_target);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over =
          refuse_overwriting("check", {{"json", json_target}}, scenario_inputs(name, overrides))) {
    return *over;
  }
  const Expected<Scenario> scenario = read_scenario(name, overrides, {}, cluster_part_faults);
  if (!scenario) {
    return report_faults(scenario.error(), name, json_target);
  }
  if (std::vector<Diagnostic> faults = simulation_faults(*scenario); !faults.empty()) {
    return report_faults(Faults{std::move(faults), FaultKind::kBadInput}, name, json_target);
  }
  if (!json_target.empty()) {
    return write_json(
        json_target,
        {{"ok", true},
         {"faults", nlohmann::ordered_json::array()},
         {"scenario", nlohmann::ordered_json::parse(write_scenario(*scenario), nullptr, false)}});
  }
  return write_output("-", name + ": ok\n");
}

}  // namespace foretrain
