#pragma once

#include "foretrain/units.h"

#include <cstdint>
#include <string>

/// Numbers for people.
namespace foretrain {

/// 16384 -> "16,384"
std::string with_commas(std::int64_t value);

/// A noun after a count: plural("GPU", 1) == "GPU", plural("GPU", 8) == "GPUs",
/// plural("micro-batch", 8) == "micro-batches".
std::string plural(const std::string& noun, std::int64_t count);

/// Four significant figures and a unit that fits: "6.31 s", "412.0 ms", "3.2 us", "850 ps".
std::string human_time(Duration duration);

/// Powers of 1000: "71.2 GB", "512 B".
std::string human_bytes(std::int64_t bytes);

/// Bytes per second, powers of 1000: "372 GB/s".
std::string human_rate(double bytes_per_second);

/// Fixed decimals, no locale: fixed(3.14159, 2) == "3.14".
std::string fixed(double value, int decimals);

/// A fraction as "42.0 %".
std::string percent(double fraction, int decimals = 1);

/// A bar of eighths of a column: 1.5 -> "█▌".
std::string bar(double columns);

/// Columns a UTF-8 text takes in a terminal (code points; no wide characters are used).
int display_width(const std::string& text);

/// Padded with spaces on the right (left when `right_align`) to `width` columns.
std::string pad(const std::string& text, int width, bool right_align = false);

}  // namespace foretrain
