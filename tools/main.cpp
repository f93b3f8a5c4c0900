#include "tools/commands.h"
#include "tools/output.h"

#include "foretrain/simulate.h"
#include "sim/base/edit_distance.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace foretrain {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*function)(int argc, char** argv) = nullptr;  ///< nullptr: not built yet
};

constexpr Command kCommands[] = {
    {"run", "simulate a training step; report, and a trace if asked", &cmd_run},
    {"compare", "scenarios or schedules side by side", &cmd_compare},
    {"schedule", "a pipeline schedule: its list of actions and its timing", &cmd_schedule},
    {"mesh", "ranks, coordinates, communication groups", &cmd_mesh},
    {"topology", "devices, links, routes and bisection bandwidth of a cluster", &cmd_topology},
    {"collective", "time of one collective operation", &cmd_collective},
    {"flows", "given flows on shared links: finish time of each", &cmd_flows},
    {"estimate", "the closed form, no simulation", &cmd_estimate},
    {"search", "every legal layout, ranked; the best simulated", &cmd_search},
    {"plan", "how to lay a model out on a cluster, step by step", &cmd_plan},
    {"validate", "simulate a table of published measurements", &cmd_validate},
    {"whatif", "what 1 % of each input is worth", nullptr},
    {"goodput", "failures, checkpoints, effective time, days, cost, energy", nullptr},
    {"calibrate", "fit a GPU's constants to measured rows", nullptr},
    {"check", "read and validate a scenario only", cmd_check},
};

constexpr std::string_view kExitCodes =
    "exit codes: 0 done; 1 the outcome is negative (out of memory, no layout, deadlock);\n"
    "            2 bad input; 3 a file that cannot be read or written; 130 interrupted\n";

int print_help() {
  std::string text = "foretrain simulates the training of large models on clusters of GPUs.\n\n";
  text += "usage: foretrain COMMAND ... [--json FILE|-]\n\ncommands:\n";
  for (const Command& command : kCommands) {
    text += "  " + std::string(command.name) + std::string(12 - command.name.size(), ' ') +
            std::string(command.summary) + (command.function == nullptr ? " (not built yet)" : "") +
            "\n";
  }
  text += "\nfirst steps: foretrain check llama3-405b-8k\n";
  text += "             foretrain COMMAND --help\n\n";
  text += kExitCodes;
  return write_output("-", text);
}

int refuse_command(std::string_view word) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
  }
  const std::string near = did_you_mean(word, names);
  std::fprintf(stderr,
               "foretrain: unknown command \"%s\"; %s\n",
               std::string(word).c_str(),
               near.empty() ? "foretrain --help lists them" : near.c_str());
  return kExitBadInput;
}

/// Nothing that a command leaves half done outlives it: files appear whole, by renaming.
void interrupted(int /*signal*/) {
  _exit(kExitInterrupted);
}

/// A closed standard stream must not become the first file opened: what is printed would land in
/// it. Opened for reading only, standard output fails as a closed one does.
void hold_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", O_RDONLY) == -1) {
      return;
    }
  }
}

int dispatch(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word.empty()) {
    const int written = print_help();
    return written == kExitDone ? kExitBadInput : written;
  }
  if (word == "--help" || word == "-h" || word == "help") {
    return print_help();
  }
  if (word == "--version") {
    return write_output("-", "foretrain " + std::string(version()) + "\n");
  }
  for (const Command& command : kCommands) {
    if (command.name != word) {
      continue;
    }
    if (command.function == nullptr) {
      return refuse_not_built(argc - 1, argv + 1, command.summary);
    }
    return command.function(argc - 1, argv + 1);
  }
  return refuse_command(word);
}

}  // namespace
}  // namespace foretrain

int main(int argc, char** argv) {
  std::signal(SIGINT, foretrain::interrupted);
  foretrain::hold_standard_streams();
  try {
    return foretrain::dispatch(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "foretrain: %s\n", error.what());
    return foretrain::kExitFile;
  }
}
