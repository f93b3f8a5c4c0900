#include "foretrain/scenario.h"

#include <cstdio>

/// Reads the scenario named on the command line with nothing but the installed library.
int main(int argc, char** argv) {
  const auto scenario = foretrain::read_scenario(argc > 1 ? argv[1] : "");
  if (!scenario) {
    for (const foretrain::Diagnostic& fault : scenario.error().list) {
      std::fprintf(stderr, "%s: %s\n", fault.pointer.c_str(), fault.message.c_str());
    }
    return 2;
  }
  std::printf("tp %lld pp %lld\n",
              static_cast<long long>(scenario->parallelism.tp),
              static_cast<long long>(scenario->parallelism.pp));
  return 0;
}
