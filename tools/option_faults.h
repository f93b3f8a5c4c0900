#pragma once

#include "foretrain/diagnostic.h"

#include <vector>

namespace CLI {
class App;
}

namespace foretrain {

/// Parses a command's line into the app's targets (argv[0] is the command's name): every fault of
/// it, where the parser would stop at the first. Throws CLI::CallForHelp.
std::vector<Diagnostic> option_faults(CLI::App& app, int argc, char** argv);

}  // namespace foretrain
