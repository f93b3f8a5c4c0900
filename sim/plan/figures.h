#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

/// Numbers as they stand on a whiteboard: three significant figures, a fourth where it makes the
/// number exact (43.75), so that what is read can be reckoned with.
namespace foretrain {

/// "96", "43.75", "175e9", "2.8e12"; whole numbers below a million exactly.
std::string figure(double value);
std::string figure(std::int64_t value);

/// The same with so many significant figures.
std::string figure(double value, int digits);

/// "43.75 GB", "2.8 TB", "120 MB".
std::string size_text(double bytes);

/// " / 8", " / (8 x 4)"; factors of 1 left out, "" when none is left.
std::string over(std::initializer_list<std::int64_t> factors);

/// The same, " / 1" when none is left.
std::string shared_by(std::initializer_list<std::int64_t> factors);

/// "5th".
std::string ordinal(std::int64_t number);

}  // namespace foretrain
