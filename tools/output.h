#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace foretrain {

constexpr int kExitDone = 0;
constexpr int kExitNegative = 1;  ///< does not fit, no layout, deadlock
constexpr int kExitBadInput = 2;
constexpr int kExitFile = 3;
constexpr int kExitInterrupted = 130;

/// Checks of an option's text, with messages for people: an integer within a range, and a text that
/// is not empty.
CLI::Validator whole_number(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                            std::int64_t most = std::numeric_limits<std::int64_t>::max());
CLI::Validator not_empty();

/// Adds the scenario a command works on, and `--set PATH=VALUE`.
void add_scenario_options(CLI::App& app,
                          std::string& scenario,
                          std::vector<std::string>& overrides);

/// Adds `--json FILE|-` to a command.
void add_json_option(CLI::App& app, std::string& target);

/// Parses a command's line (argv[0] is the command's name). Returns an exit code when the command
/// is over: after --help, or after usage errors (2, all of them, the nearest flag suggested).
std::optional<int> parse_options(CLI::App& app, int argc, char** argv);

/// Refuses a command that is not built, by name: exit code 2; --help says so and is exit code 0.
int refuse_not_built(int argc, char** argv, std::string_view summary);

/// Faults of outputs that would overwrite each other: two on standard output, or in one file. Each
/// is an option's name and its target, empty when not given.
std::vector<Diagnostic> check_targets(
    const std::vector<std::pair<std::string, std::string>>& targets);

/// Refuses, on standard error only, outputs that would overwrite a file the command reads: the exit
/// code, or nothing. `inputs` are names or paths.
std::optional<int> refuse_overwriting(
    const std::string& command,
    const std::vector<std::pair<std::string, std::string>>& targets,
    const std::vector<std::string>& inputs);

/// Prints the faults of `source` (a scenario's name or path) to standard error as text, and as
/// {"ok": false, "faults": [...]} to `json_target` unless that is empty; to standard output ("-")
/// only so. Returns the exit code.
int report_faults(const Faults& faults, const std::string& source, const std::string& json_target);

/// The faults as people read them: a line each, pointers in a column.
std::string faults_text(const Faults& faults, const std::string& source);

/// Columns of a page of text: the terminal's, from 80 to 120; 100 where there is none.
int page_width();

/// Writes a text to a file, or to standard output for "-"; a file appears whole or not at all.
/// Returns kExitDone, or kExitFile with a message on standard error.
int write_output(const std::string& target, const std::string& text);

/// The same for JSON, indented; ends with a newline.
int write_json(const std::string& target, const nlohmann::ordered_json& value);

}  // namespace foretrain
