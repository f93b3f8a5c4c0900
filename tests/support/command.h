#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

/// Runs the program as a shell does.
namespace foretrain::test {

struct Outcome {
  int code = -1;    ///< exit code; -1: did not exit by itself
  std::string out;  ///< standard output
  std::string err;  ///< standard error, where the caller collects it
};

/// `line` follows the program's name, redirections included.
inline Outcome run_program(const std::string& line) {
  Outcome outcome;
  std::FILE* const pipe = popen((FORETRAIN_PROGRAM " " + line).c_str(), "r");
  if (pipe == nullptr) {
    return outcome;
  }
  std::array<char, 4096> buffer{};
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(buffer.data(), 1, buffer.size(), pipe);
    outcome.out.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace foretrain::test
