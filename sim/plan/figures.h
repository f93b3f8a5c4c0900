#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

/// Numbers as they stand on a whiteboard: three significant figures, a fourth where it makes the
/// number exact (43.75). What is reckoned with has four, so that the result follows from it.
namespace foretrain {

/// "96", "43.75", "175e9", "2.8e12"; whole numbers below a million exactly.
std::string figure(double value);
std::string figure(std::int64_t value);

/// As many significant figures as that, zeros at the end left out; whole numbers as above.
std::string operand(double value, int digits = 4);

/// "43.75 GB", "2.8 TB", "120 MB"; as a result and as what is reckoned with.
std::string size_text(double bytes);
std::string size_operand(double bytes);

/// What an expression of this board comes to: numbers, units of bytes, + - x / and parentheses.
double reckoned(const std::string& expression);

/// `value` where the printed numbers come to it, else what they come to in three figures.
double outcome(const std::string& expression, double value);

/// "EXPRESSION = RESULT". The result is `value`; where the expression's printed numbers are
/// rounded, it is what they come to, in three figures, so that a reader reckons the same.
std::string equation(const std::string& expression, double value);
std::string size_equation(const std::string& expression, double bytes);
std::string percent_equation(const std::string& expression, double fraction, int decimals = 1);

/// " / 8", " / (8 x 4)"; factors of 1 left out, "" when none is left.
std::string over(std::initializer_list<std::int64_t> factors);

/// The same, " / 1" when none is left.
std::string shared_by(std::initializer_list<std::int64_t> factors);

/// "5th".
std::string ordinal(std::int64_t number);

}  // namespace foretrain
