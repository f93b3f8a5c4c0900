#pragma once

#include <string>

namespace foretrain::test {

/// Reckons a line of a whiteboard again from its own text: every part between equal signs must come
/// to the same number, as exactly as its figures are written. "": it does; else what is wrong.
/// Lines without an equal sign say nothing to reckon.
std::string arithmetic_fault(const std::string& line);

}  // namespace foretrain::test
