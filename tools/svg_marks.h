#pragma once

#include "foretrain/schedule.h"

#include <string>
#include <string_view>

/// Pieces of the picture of a schedule for a slide.
namespace foretrain {

std::string svg_escaped(std::string_view text);

/// ` name="12.34"`
std::string svg_attribute(const char* name, double value);

/// A text of a style class: rank, number, light, axis, title, note.
std::string svg_label(double x, double y, const std::string& style, const std::string& text);

struct SvgBox {
  double x = 0, y = 0, width = 0, height = 0;
};
/// A rectangle, with a tooltip unless it is empty.
std::string svg_rectangle(const SvgBox& box, const std::string& fill, const std::string& tooltip);
/// The mark of the second model copy: a dark edge below.
std::string svg_copy_mark(const SvgBox& box);

/// The colour of a kind of action; later chunks of a rank are darker: shade 1 is the first.
std::string kind_colour(ActionKind kind, double shade = 1);
const char* kind_words(ActionKind kind);

}  // namespace foretrain
