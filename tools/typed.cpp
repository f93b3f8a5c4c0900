#include "tools/typed.h"

#include <filesystem>
#include <system_error>

namespace foretrain {

std::string shell_word(const std::string& text) {
  const bool plain =
      text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+%@-") ==
      std::string::npos;
  if (plain && !text.empty()) {
    return text;
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string file_word(const std::string& path) {
  const bool named = path.find('/') == std::string::npos;
  const bool mistakable = !path.ends_with(".json") || path.starts_with("-");
  return shell_word(named && mistakable ? "./" + path : path);
}

std::vector<std::string> comma_words(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',') {
      words.emplace_back();
    } else if (c != ' ') {
      words.back() += c;
    }
  }
  return words;
}

std::string assume_words(const std::vector<std::string>& key_values) {
  std::string words;
  for (const std::string& key_value : key_values) {
    words += " --assume " + shell_word(key_value);
  }
  return words;
}

std::string job_words(const JobLine& line) {
  return "--model " + shell_word(line.model) + " --topology " + shell_word(line.topology) +
         " --gpus " + std::to_string(line.gpus) + " --seq " + std::to_string(line.sequence_length) +
         " --gbs " + std::to_string(line.global_batch_size) + assume_words(line.assume);
}

std::string from_anywhere(const std::string& reference) {
  std::error_code error;
  const bool path = reference.find('/') != std::string::npos || reference.ends_with(".json");
  const std::filesystem::path absolute = std::filesystem::absolute(reference, error);
  return path && !error ? absolute.lexically_normal().string() : reference;
}

}  // namespace foretrain
