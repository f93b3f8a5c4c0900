#pragma once

#include <string>

namespace foretrain {

/// A text in lines of at most `width` columns; the first line begins with `first`, others with as
/// many spaces as `hang`. A number keeps the word behind it, and short items between dots stay
/// whole.
std::string wrapped(const std::string& first, const std::string& text, int hang, int width);

}  // namespace foretrain
