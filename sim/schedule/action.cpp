#include "foretrain/schedule.h"

#include <charconv>
#include <limits>

namespace foretrain {
namespace {

constexpr std::string_view kLetters = "FBIW";  // in the order of ActionKind

template <typename Number>
std::optional<Number> parse_index(std::string_view text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0 || text.front() == '-') {
    return std::nullopt;
  }
  return value;
}

/// Cuts off what follows the last `mark`; nothing when the mark is not there.
std::optional<std::string_view> take_suffix(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view suffix = text.substr(at + 1);
  text = text.substr(0, at);
  return suffix;
}

}  // namespace

std::string to_string(const Action& action) {
  return std::to_string(action.stage) + kLetters[static_cast<std::size_t>(action.kind)] +
         std::to_string(action.micro_batch) +
         (action.slice >= 0 ? "." + std::to_string(action.slice) : "") +
         (action.copy >= 0 ? "@" + std::to_string(action.copy) : "");
}

std::optional<Action> parse_action(std::string_view text) {
  Action action;
  if (const std::optional<std::string_view> copy = take_suffix(text, '@')) {
    if (*copy != "0" && *copy != "1") {
      return std::nullopt;
    }
    action.copy = *copy == "0" ? 0 : 1;
  }
  if (const std::optional<std::string_view> suffix = take_suffix(text, '.')) {
    const std::optional<std::int16_t> slice =
        suffix->empty() ? std::nullopt : parse_index<std::int16_t>(*suffix);
    if (!slice) {
      return std::nullopt;
    }
    action.slice = *slice;
  }
  const std::size_t letter = text.find_first_of(kLetters);
  if (letter == std::string_view::npos || letter == 0 || letter + 1 == text.size()) {
    return std::nullopt;
  }
  const auto stage = parse_index<std::int32_t>(text.substr(0, letter));
  const auto micro_batch = parse_index<std::int32_t>(text.substr(letter + 1));
  if (!stage || !micro_batch) {
    return std::nullopt;
  }
  action.stage = *stage;
  action.kind = static_cast<ActionKind>(kLetters.find(text[letter]));
  action.micro_batch = *micro_batch;
  return action;
}

std::string unit_text(std::span<const Action> unit) {
  return unit_length(unit.front()) == 1
             ? to_string(unit.front())
             : "(" + to_string(unit[0]) + ";" + to_string(unit[1]) + ")OVERLAP_F_B";
}

std::int32_t stage_owner(Placement placement,
                         std::int32_t pp,
                         std::int32_t stage,
                         std::int32_t copy) {
  const std::int32_t place = stage % pp;
  const bool upwards = placement == Placement::kV ? stage / pp % 2 == 1 : copy == 1;
  return upwards ? pp - 1 - place : place;
}

std::vector<std::int32_t> Schedule::stages_of(std::int32_t rank) const {
  std::vector<std::int32_t> owned;
  for (std::int32_t stage = 0; stage < stages(); ++stage) {
    for (std::int32_t copy = 0; copy < copies(); ++copy) {
      if (owner(stage, copy) == rank) {
        owned.push_back(stage);
      }
    }
  }
  return owned;
}

}  // namespace foretrain
