#pragma once

#include <string>

namespace foretrain::test {

/// Reckons a line of a whiteboard again from its own text, its numbers taken as they are printed:
/// every part behind an equal sign must be what the first comes to, to half a unit of its last
/// digit, or to 0.06 % where numbers of four digits are reckoned with. "": it does; else what is
/// wrong. Lines without an equal sign say nothing to reckon.
std::string arithmetic_fault(const std::string& line);

}  // namespace foretrain::test
