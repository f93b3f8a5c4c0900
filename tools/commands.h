#pragma once

/// The commands of the program. Each takes its own part of the command line (argv[0] is the
/// command's name) and returns the exit code.
namespace foretrain {

int cmd_check(int argc, char** argv);
int cmd_collective(int argc, char** argv);
int cmd_compare(int argc, char** argv);
int cmd_estimate(int argc, char** argv);
int cmd_flows(int argc, char** argv);
int cmd_mesh(int argc, char** argv);
int cmd_plan(int argc, char** argv);
int cmd_run(int argc, char** argv);
int cmd_schedule(int argc, char** argv);
int cmd_search(int argc, char** argv);
int cmd_topology(int argc, char** argv);
int cmd_validate(int argc, char** argv);

}  // namespace foretrain
