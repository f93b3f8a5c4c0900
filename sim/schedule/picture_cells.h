#pragma once

#include "foretrain/schedule.h"

#include <array>

/// What a terminal's picture draws: a rank's list as boxes, and the words for them.
namespace foretrain {

/// What a box says, from the most to the least.
enum class Naming { kStage, kMicroBatch, kWithoutSlice, kLetter };

/// Letters of a coarse picture: kinds of the first model copy, of the second, overlapped units.
constexpr std::string_view kPictureLetters = "FBIWfbiw&";
using LetterShares = std::array<Int128, kPictureLetters.size()>;

/// One unit in one piece, or one action.
struct PictureBox {
  const Action* first = nullptr;
  bool overlapped = false;  ///< with the action behind it
  std::int64_t start = 0, end = 0;

  /// `2F0`, `F0`, `F3&B5`; small letters for the second copy of the model.
  std::string name(Naming naming) const;
  /// Index into kPictureLetters.
  std::size_t letter() const;
};

/// A rank's boxes in order, those that take no time left out.
class PictureRow {
 public:
  PictureRow(const std::vector<Action>& list,
             const std::vector<Instant>& start,
             const std::vector<Instant>& end)
      : list_(&list), start_(&start), end_(&end) {}

  template <typename Visit>
  void each(const Visit& visit) const {
    for (std::size_t i = 0; i < list_->size();) {
      const PictureBox box = box_at(i);
      i += box.overlapped ? 2 : 1;
      if (box.end > box.start) {
        visit(box);
      }
    }
  }
  std::int64_t boxes() const;

 private:
  PictureBox box_at(std::size_t i) const;

  const std::vector<Action>* list_;
  const std::vector<Instant>*start_, *end_;
};

/// How to read a picture of a schedule: only of what occurs in it.
std::string picture_legend(const Schedule& schedule, Naming naming);

}  // namespace foretrain
