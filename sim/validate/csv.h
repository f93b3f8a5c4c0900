#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

struct CsvRow {
  std::int64_t line = 0;  ///< of its first character, from 1
  std::vector<std::string> fields;
};

/// A comma-separated table as RFC 4180 has it: quoted fields hold commas, line breaks and doubled
/// quotes; lines end in LF or CRLF; a byte order mark and blank lines are skipped.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
};

/// Faults: no header, a column twice or without a name, a row of another width, a quote that never
/// closes or stands inside a bare field. Pointers /LINE.
Expected<CsvTable> parse_csv(std::string_view text);

}  // namespace foretrain
