#include "sim/schedule/picture_cells.h"

#include <algorithm>

namespace foretrain {
namespace {

/// What of all a picture may show a schedule has.
struct Shown {
  bool whole = false, split = false, overlapped = false;
};

Shown shown_in(const Schedule& schedule) {
  Shown shown;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      shown.whole = shown.whole || action.kind == ActionKind::kBackward;
      shown.split = shown.split || action.kind == ActionKind::kInputGradient;
      shown.overlapped = shown.overlapped || action.overlapped;
    }
  }
  return shown;
}

std::string action_name(const Action& action, Naming naming) {
  Action plain = action;
  plain.copy = -1;
  plain.slice = naming == Naming::kWithoutSlice ? std::int16_t{-1} : action.slice;
  std::string text = to_string(plain);
  const std::size_t letter = text.find_first_of(kPictureLetters);
  if (action.copy == 1) {
    text[letter] = static_cast<char>(text[letter] - 'A' + 'a');
  }
  return naming == Naming::kStage ? text : text.substr(letter);
}

std::string kinds_text(const Shown& shown) {
  std::string text;
  const auto add = [&](bool present, const char* what) { text += present ? what : ""; };
  add(shown.whole, "B backward, ");
  add(shown.split, "I input half of a backward, W weight half, ");
  return text;
}

}  // namespace

std::string PictureBox::name(Naming naming) const {
  return action_name(first[0], naming) + (overlapped ? "&" + action_name(first[1], naming) : "");
}

std::size_t PictureBox::letter() const {
  constexpr std::size_t kKinds = 4;
  return overlapped ? kPictureLetters.size() - 1
                    : static_cast<std::size_t>(first->kind) + (first->copy == 1 ? kKinds : 0);
}

std::int64_t PictureRow::boxes() const {
  std::int64_t count = 0;
  each([&](const PictureBox&) { ++count; });
  return count;
}

PictureBox PictureRow::box_at(std::size_t i) const {
  const Action& action = (*list_)[i];
  const bool one_piece =
      action.overlapped && (*start_)[i] == (*start_)[i + 1] && (*end_)[i] == (*end_)[i + 1];
  return {&action,
          one_piece,
          (*start_)[i].time_since_epoch().count(),
          (*end_)[i].time_since_epoch().count()};
}

std::string picture_legend(const Schedule& schedule, Naming naming) {
  const Shown shown = shown_in(schedule);
  const std::string copies =
      schedule.copies() > 1 ? "small letters: the second copy of the model, " : "";
  if (naming == Naming::kLetter) {
    return "too wide to number: columns of mostly F forward, " + kinds_text(shown) +
           (shown.overlapped ? "& overlapped units, " : "") + copies +
           "x mixed, : mixed and a fifth idle or more, dots idle";
  }
  const bool slices = schedule.size.slices > 1 && naming != Naming::kWithoutSlice;
  const bool stage = naming == Naming::kStage;
  std::string text = std::string(stage ? "2F0" : "F0") + (slices ? ".1" : "") + ": " +
                     (stage ? "stage 2, " : "") + "forward of micro-batch 0" +
                     (slices ? ", slice 1" : "") + "; " + kinds_text(shown);
  if (shown.overlapped) {
    text += std::string(stage ? "0F3&3B1" : "F3&B1") + " one overlapped unit, ";
  }
  text += copies + "dots idle";
  text += !stage && schedule.size.vpp > 1 ? "; stages left out for room" : "";
  return text + (naming == Naming::kWithoutSlice ? "; slices left out for room" : "");
}

}  // namespace foretrain
