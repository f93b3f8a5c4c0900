#include "foretrain/schedule.h"

#include <charconv>

namespace foretrain {
namespace {

constexpr std::string_view kLetters = "FBIW";  // in the order of ActionKind

std::optional<std::int32_t> parse_index(std::string_view text) {
  std::int32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string to_string(const Action& action) {
  return std::to_string(action.stage) + kLetters[static_cast<std::size_t>(action.kind)] +
         std::to_string(action.micro_batch);
}

std::optional<Action> parse_action(std::string_view text) {
  const std::size_t letter = text.find_first_of(kLetters);
  if (letter == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<std::int32_t> stage = parse_index(text.substr(0, letter));
  const std::optional<std::int32_t> micro_batch = parse_index(text.substr(letter + 1));
  if (!stage || !micro_batch) {
    return std::nullopt;
  }
  return Action{*stage, static_cast<ActionKind>(kLetters.find(text[letter])), *micro_batch};
}

}  // namespace foretrain
