#pragma once

#include "foretrain/estimate.h"

#include <string>

/// Numbers of an estimate as its page shows them.
namespace foretrain {

/// Three significant figures with a prefix: "2.66 M", "415", "7.00 k".
std::string count_text(double value);

/// TFLOP/s without a prefix: "415", "1,979".
std::string teraflops_text(double flops_per_second);

/// "71.9 GB", "0.30 GB"; powers of 1000, so that parts can be compared by eye.
std::string gigabytes_text(double bytes);

/// "66.9 GiB"; powers of 1024.
std::string gibibytes_text(double bytes);

/// "5.84 s"; steps longer than 11 days are told in days.
std::string seconds_text(double seconds);

/// Six significant figures, trailing zeros dropped: "0.6", "70.6e9", "4096".
std::string short_number(double value);

/// As --assume takes it: "80 GB", "450 GB/s", "989 TFLOP/s", "70.6e9".
std::string assumption_text(AssumptionUnit unit, double value);

}  // namespace foretrain
