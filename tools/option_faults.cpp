#include "tools/option_faults.h"

#include "sim/base/edit_distance.h"

#include <algorithm>
#include <string>

#include <CLI/CLI.hpp>

namespace foretrain {
namespace {

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  return known;
}

/// "--gpus" of "--gpus=8"; the word itself where there is no value.
std::string flag_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

/// A line of which every fault is wanted: what is at fault is taken out, and the rest parsed again.
class FaultyLine {
 public:
  FaultyLine(CLI::App& app, int argc, char** argv) : app_(app), words_(argv + 1, argv + argc) {}

  /// Parses until nothing is at fault, or nothing can be taken out. Lets CLI::CallForHelp pass.
  std::vector<Diagnostic> faults() {
    while (parse_once()) {
    }
    return std::move(faults_);
  }

 private:
  /// Whether there was a fault that could be taken out.
  bool parse_once() {
    try {
      app_.parse(std::vector<std::string>(words_.rbegin(), words_.rend()));
    } catch (const CLI::CallForHelp&) {
      throw;
    } catch (const CLI::RequiredError& error) {
      faults_.push_back({"", error.what(), ""});
      return relax(error.what());
    } catch (const CLI::ExtrasError&) {
      return take_out_unknown();
    } catch (const CLI::ParseError& error) {
      return take_out(error.what());
    }
    return false;
  }

  bool is_flag(const std::string& word) const {
    const std::vector<std::string> known = flags_of(app_);
    return std::find(known.begin(), known.end(), flag_of(word)) != known.end();
  }

  /// An option that is missing is missed once.
  bool relax(const std::string& message) {
    const std::string name = message.substr(0, message.find(' '));
    CLI::Option* const option = app_.get_option_no_throw(name);
    if (option != nullptr) {
      option->required(false);
    }
    return option != nullptr;
  }

  bool take_out_unknown() {
    const std::vector<std::string> extras = app_.remaining();
    const std::vector<std::string> known = flags_of(app_);
    const std::size_t before = faults_.size();
    for (std::size_t at = 0; at < extras.size(); ++at) {
      const bool value = at > 0 && extras[at - 1].starts_with("-") && !extras[at].starts_with("-");
      if (!value) {
        const std::string flag = flag_of(extras[at]);
        faults_.push_back({"", "unexpected: " + extras[at], did_you_mean(flag, known)});
      }
      const auto found = std::ranges::find(words_, extras[at]);
      if (found != words_.end()) {
        words_.erase(found);
      }
    }
    return faults_.size() > before;
  }

  bool take_out(std::string message) {
    const std::string name = message.substr(0, message.find_first_of(": ="));
    const std::string twice = "At Most 1 required but received ";
    if (const std::size_t at = message.find(twice); at != std::string::npos) {
      message =
          name + ": once is enough, it is given " + message.substr(at + twice.size()) + " times";
    }
    faults_.push_back({"", message, ""});
    const std::size_t before = words_.size();
    for (std::size_t at = 0; at < words_.size();) {
      if (flag_of(words_[at]) != name) {
        ++at;
        continue;
      }
      const bool apart = words_[at] == name && at + 1 < words_.size() && !is_flag(words_[at + 1]);
      words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(at),
                   words_.begin() + static_cast<std::ptrdiff_t>(at + (apart ? 2 : 1)));
    }
    if (CLI::Option* const option = app_.get_option_no_throw(name)) {
      option->required(false);
    }
    return words_.size() < before;
  }

  CLI::App& app_;
  std::vector<std::string> words_;
  std::vector<Diagnostic> faults_;
};

}  // namespace

std::vector<Diagnostic> option_faults(CLI::App& app, int argc, char** argv) {
  if (app.get_name().empty()) {
    app.name(argv[0]);
  }
  return FaultyLine(app, argc, argv).faults();
}

}  // namespace foretrain
