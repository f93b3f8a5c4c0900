#pragma once

#include "foretrain/report.h"

#include <string>
#include <vector>

/// Parts of the text report. Each returns whole lines, each ending in a newline, or nothing.
namespace foretrain {

/// Terminal emphasis around text, or the text as it is.
enum class Emphasis { kNone, kTitle, kBad };
std::string paint(const TextStyle& style, Emphasis emphasis, const std::string& text);

/// "title  a · b · c", broken between items where the width ends, continued under the first item.
/// An item longer than a line is broken between words, and shares no line with another.
std::string item_lines(const std::string& title,
                       const std::vector<std::string>& items,
                       const TextStyle& style,
                       const std::string& separator = " · ");

/// Bytes in units of 1e9, one decimal: 71.2.
std::string gigabytes(std::int64_t bytes);

std::string breakdown_lines(const StepReport& report, const TextStyle& style);
std::string stage_lines(const StepReport& report, const TextStyle& style);
std::string network_lines(const StepReport& report, const TextStyle& style);
std::string link_lines(const StepReport& report, const TextStyle& style);
std::string straggler_lines(const StepReport& report, const TextStyle& style);

}  // namespace foretrain
