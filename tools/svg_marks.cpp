#include "tools/svg_marks.h"

#include "sim/base/format.h"

#include <array>

namespace foretrain {
namespace {

struct Colour {
  int red, green, blue;
};
/// Blue, green, violet, amber: told apart by people who see no red or green, too.
constexpr std::array<Colour, 4> kColours = {
    {{120, 170, 226}, {142, 198, 122}, {186, 154, 214}, {240, 192, 104}}};

}  // namespace

std::string svg_escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

std::string svg_attribute(const char* name, double value) {
  return " " + std::string(name) + "=\"" + fixed(value, 2) + "\"";
}

std::string svg_label(double x, double y, const std::string& style, const std::string& text) {
  return "<text class=\"" + style + "\"" + svg_attribute("x", x) + svg_attribute("y", y) + ">" +
         svg_escaped(text) + "</text>\n";
}

std::string svg_rectangle(const SvgBox& box, const std::string& fill, const std::string& tooltip) {
  const std::string open = "<rect" + svg_attribute("x", box.x) + svg_attribute("y", box.y) +
                           svg_attribute("width", box.width) + svg_attribute("height", box.height) +
                           " fill=\"" + fill + "\"";
  return tooltip.empty() ? open + "/>\n"
                         : open + "><title>" + svg_escaped(tooltip) + "</title></rect>\n";
}

std::string svg_copy_mark(const SvgBox& box) {
  const double y = box.y + box.height - 1.5;
  return "<path class=\"copy\" d=\"M" + fixed(box.x + 0.5, 2) + " " + fixed(y, 2) + "h" +
         fixed(box.width - 1, 2) + "\"/>\n";
}

std::string kind_colour(ActionKind kind, double shade) {
  const Colour& base = kColours[static_cast<std::size_t>(kind)];
  const auto part = [&](int value) { return std::to_string(static_cast<int>(value * shade)); };
  return "rgb(" + part(base.red) + "," + part(base.green) + "," + part(base.blue) + ")";
}

const char* kind_words(ActionKind kind) {
  constexpr std::array<const char*, 4> kWords = {
      "forward", "backward", "input gradient (I)", "weight gradient (W)"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace foretrain
