#pragma once

#include "tools/job_options.h"

#include <string>
#include <vector>

/// Command lines as a reader may type or paste them into a shell.
namespace foretrain {

/// In quotes where a shell would take a character for more than itself.
std::string shell_word(const std::string& text);

/// A file as an argument; never to be taken for a preset's name or an option.
std::string file_word(const std::string& path);

/// " --assume KEY=VALUE" for each.
std::string assume_words(const std::vector<std::string>& key_values);

/// --model, --topology, --gpus, --seq, --gbs and every --assume.
std::string job_words(const JobLine& line);

/// The words of a list typed with commas; blanks do not count.
std::vector<std::string> comma_words(const std::string& list);

/// A reference that holds from any directory: paths become absolute, names stay.
std::string from_anywhere(const std::string& reference);

}  // namespace foretrain
