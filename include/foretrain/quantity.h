#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"

#include <string_view>

/// Quantities as people write them: a number and a unit. Bits ("b") and bytes ("B") are told apart;
/// kB MB GB TB PB are powers of 1000, KiB MiB GiB TiB PiB of 1024. Faults have pointer "" and carry
/// an example of what would be right.
namespace foretrain {

/// "5 us", "1.5 min", "300 s": ps ns us ms s min h d.
Expected<Duration> parse_duration(std::string_view text);

/// "80 GB", "80 GiB", "512 B".
Expected<Bytes> parse_bytes(std::string_view text);

/// SIZE of the command line: as parse_bytes, or bare bytes ("1024").
Expected<Bytes> parse_size(std::string_view text);

/// "50 GB/s", "400 Gb/s" (also Gbit/s).
Expected<Bandwidth> parse_bandwidth(std::string_view text);

/// "989 TFLOP/s".
Expected<FlopRate> parse_flop_rate(std::string_view text);

}  // namespace foretrain
