#include "tools/output.h"

#include "tools/option_faults.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

namespace foretrain {
namespace {

int fail_to_write(const std::string& target, int error) {
  std::fprintf(stderr, "foretrain: %s: %s\n", target.c_str(), std::strerror(error));
  return kExitFile;
}

bool write_all(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

/// Whether two targets are one, standard output or a file, which need not be there yet; devices
/// may be shared.
bool same_file(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") {
    return a == b;
  }
  std::error_code error;
  const std::filesystem::path first = std::filesystem::weakly_canonical(a, error);
  if (std::filesystem::is_character_file(first, error)) {
    return false;
  }
  const std::filesystem::path second = std::filesystem::weakly_canonical(b, error);
  return a == b || (!first.empty() && first == second) ||
         std::filesystem::equivalent(first, second, error);
}

/// "a whole number from 1 to 100000", as far as there are limits.
std::string range_text(std::int64_t least, std::int64_t most) {
  const bool below = least != std::numeric_limits<std::int64_t>::min();
  const bool above = most != std::numeric_limits<std::int64_t>::max();
  return "a whole number" +
         (!below   ? ""
          : !above ? ", at least " + std::to_string(least)
                   : " from " + std::to_string(least) + " to " + std::to_string(most));
}

/// The JSON target of a line that could not be parsed, so that its fault goes where asked.
std::string json_target_of(int argc, char** argv) {
  for (int index = 1; index < argc; ++index) {
    const std::string word = argv[index];
    if (word == "--json" && index + 1 < argc) {
      return argv[index + 1];
    }
    if (word.starts_with("--json=")) {
      return word.substr(7);
    }
  }
  return "";
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
      return text + " is too large";
    }
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && value >= least && value <= most
               ? ""
               : "must be " + range_text(least, most) + ", not " + (text.empty() ? "empty" : text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "must not be empty" : "";
  };
  return CLI::Validator(check, "");
}

void add_scenario_options(CLI::App& app,
                          std::string& scenario,
                          std::vector<std::string>& overrides) {
  app.add_option("scenario", scenario, "preset name, or path of a scenario file")
      ->required()
      ->check(not_empty());
  app.add_option("--set", overrides, "PATH=VALUE, e.g. parallelism.pp=8; may be repeated")
      ->type_name("P=V")
      ->take_all()
      ->expected(1);
}

void add_json_option(CLI::App& app, std::string& target) {
  app.add_option("--json", target, "write the result as JSON to FILE, or to standard output (-)")
      ->type_name("FILE|-")
      ->check(not_empty());
}

std::vector<Diagnostic> check_targets(
    const std::vector<std::pair<std::string, std::string>>& targets) {
  std::vector<Diagnostic> faults;
  for (std::size_t first = 0; first < targets.size(); ++first) {
    for (std::size_t second = first + 1; second < targets.size(); ++second) {
      const auto& [name, target] = targets[first];
      const auto& [other_name, other] = targets[second];
      if (target.empty() || other.empty() || !same_file(target, other)) {
        continue;
      }
      const std::string both = "--" + name + " and --" + other_name;
      faults.push_back({"/" + name,
                        target == "-" ? "standard output cannot hold both " + both + " (-)"
                                      : both + " name the same file, " + target,
                        "write one of them to another file"});
    }
  }
  return faults;
}

std::optional<int> refuse_overwriting(
    const std::string& command,
    const std::vector<std::pair<std::string, std::string>>& targets,
    const std::vector<std::string>& inputs) {
  Faults faults;
  for (const auto& [name, target] : targets) {
    for (const std::string& input : inputs) {
      const bool path = input.find_first_of("/.") != std::string::npos;  // and no preset's name
      if (path && !target.empty() && target != "-" && same_file(target, input)) {
        faults.list.push_back({"/" + name,
                               "--" + name + " would overwrite " + input + ", which is read here",
                               "write to another file"});
      }
    }
  }
  return faults.list.empty() ? std::nullopt
                             : std::optional(report_faults(faults, "foretrain " + command, ""));
}

std::optional<int> parse_options(CLI::App& app, int argc, char** argv) {
  Faults faults;
  try {
    faults.list = option_faults(app, argc, argv);
  } catch (const CLI::CallForHelp&) {
    return write_output("-", app.help());
  }
  if (faults.list.empty()) {
    return std::nullopt;
  }
  if (faults.list.back().hint.empty()) {
    faults.list.back().hint = "foretrain " + app.get_name() + " --help shows its options";
  }
  return report_faults(faults, "foretrain " + app.get_name(), json_target_of(argc, argv));
}

int refuse_not_built(int argc, char** argv, std::string_view summary) {
  const std::string name = argc > 0 ? argv[0] : "";
  for (int index = 1; index < argc; ++index) {
    const std::string_view word = argv[index];
    if (word == "--help" || word == "-h") {
      return write_output("-",
                          "foretrain " + name + ": " + std::string(summary) +
                              "\nnot built yet; foretrain --help lists the commands that are\n");
    }
  }
  const Faults faults{{{"", "the command \"" + name + "\" is not built yet", ""}},
                      FaultKind::kBadInput};
  return report_faults(faults, "foretrain " + name, json_target_of(argc, argv));
}

std::string faults_text(const Faults& faults, const std::string& source) {
  int width = 0;
  for (const Diagnostic& fault : faults.list) {
    width = std::max(width, display_width(fault.pointer));
  }
  width = std::min(width, 40);
  const std::size_t count = faults.list.size();
  std::string text =
      source + ": " + std::to_string(count) + (count == 1 ? " fault\n" : " faults\n");
  for (const Diagnostic& fault : faults.list) {
    text += "  " + (width == 0 ? std::string() : pad(fault.pointer, width) + "  ") + fault.message +
            (fault.hint.empty() ? "" : "; " + fault.hint) + "\n";
  }
  return text;
}

int report_faults(const Faults& faults, const std::string& source, const std::string& json_target) {
  const int code = faults.kind == FaultKind::kFile ? kExitFile : kExitBadInput;
  if (json_target != "-") {
    std::fputs(faults_text(faults, source).c_str(), stderr);
  }
  if (json_target.empty()) {
    return code;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Diagnostic& fault : faults.list) {
    list.push_back({{"pointer", fault.pointer}, {"message", fault.message}, {"hint", fault.hint}});
  }
  const int written = write_json(json_target, {{"ok", false}, {"faults", list}});
  return written == kExitDone ? code : written;
}

int page_width() {
  constexpr int kPipe = 100;
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? std::clamp<int>(size.ws_col, 80, 120) : kPipe;
}

int write_output(const std::string& target, const std::string& text) {
  if (target == "-") {
    return write_all(stdout, text) ? kExitDone : fail_to_write("standard output", errno);
  }
  const bool replaceable = access(target.c_str(), F_OK) != 0 || target.rfind("/dev/", 0) != 0;
  const std::string place = replaceable ? target + "." + std::to_string(getpid()) : target;
  std::FILE* file = std::fopen(place.c_str(), "wb");
  if (file == nullptr) {
    return fail_to_write(target, errno);
  }
  bool written = write_all(file, text);
  int error = errno;
  if (std::fclose(file) != 0 && written) {
    written = false;
    error = errno;
  }
  if (!written) {
    if (replaceable) {
      std::remove(place.c_str());
    }
    return fail_to_write(target, error);
  }
  if (replaceable && std::rename(place.c_str(), target.c_str()) != 0) {
    const int rename_error = errno;
    std::remove(place.c_str());
    return fail_to_write(target, rename_error);
  }
  return kExitDone;
}

int write_json(const std::string& target, const nlohmann::ordered_json& value) {
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return write_output(target, value.dump(2, ' ', false, replace) + "\n");
}

}  // namespace foretrain
