#include "foretrain/compare.h"
#include "foretrain/schedule.h"

#include <charconv>
#include <filesystem>

namespace foretrain {
namespace {

std::optional<std::int64_t> positive(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole && value > 0 ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ':') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".csv");
}

}  // namespace

Expected<ScheduleChoice> parse_schedule_choice(const std::string& text) {
  ScheduleChoice choice;
  choice.text = text;
  if (is_path(text)) {
    choice.csv = std::filesystem::absolute(text).lexically_normal().string();
    return choice;
  }
  const std::vector<std::string> words = split(text);
  choice.name = words.front();
  bool legal = !choice.name.empty() && words.size() <= 3;
  if (legal && words.size() > 1) {
    choice.best = words.size() == 2 && words[1] == "best";
    choice.vpp = positive(words[1]);
    legal = choice.best || choice.vpp;
  }
  if (legal && words.size() > 2) {
    choice.group = positive(words[2]);
    legal = choice.group.has_value();
  }
  if (!legal) {
    return refuse(Diagnostic{"/schedules",
                             "cannot read \"" + text + "\"",
                             "NAME, NAME:VPP, NAME:VPP:GROUP, NAME:best or FILE.csv, e.g. "
                             "interleaved:8"});
  }
  return choice;
}

std::vector<ScheduleChoice> every_schedule() {
  std::vector<ScheduleChoice> choices;
  for (const std::string_view name : schedule_names()) {
    ScheduleChoice choice;
    choice.text = choice.name = std::string(name);
    choice.best = true;
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace foretrain
