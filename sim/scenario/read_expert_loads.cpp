#include "sim/scenario/sections.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>

namespace foretrain {
namespace {

constexpr std::string_view kHeader = "layer,micro_batch,rank,load";

/// Four numbers between commas, the first three whole and none negative.
std::optional<ExpertLoad> parse_row(const std::string& line) {
  std::array<double, 4> fields{};
  const char* at = line.c_str();
  for (std::size_t field = 0; field < fields.size(); ++field) {
    char* end = nullptr;
    fields[field] = std::strtod(at, &end);
    const bool last = field + 1 == fields.size();
    const bool whole = last || fields[field] == std::floor(fields[field]);
    if (end == at || *end != (last ? '\0' : ',') || !whole || !(fields[field] >= 0.0) ||
        fields[field] > 1e15) {
      return std::nullopt;
    }
    at = end + 1;
  }
  return ExpertLoad{static_cast<std::int64_t>(fields[0]),
                    static_cast<std::int64_t>(fields[1]),
                    static_cast<std::int64_t>(fields[2]),
                    fields[3]};
}

}  // namespace

std::vector<ExpertLoad> read_expert_loads(const JsonCursor& at, const std::string& path) {
  constexpr int kMostFaults = 5;
  std::ifstream file(path);
  std::vector<ExpertLoad> loads;
  if (!file) {
    at.fault("cannot read " + path, "a CSV file with the header " + std::string(kHeader));
    return loads;
  }
  int faults = 0;
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line) && faults < kMostFaults;) {
    ++number;
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) {
      line.erase(0, 3);
    }
    const std::optional<ExpertLoad> row = number == 1 ? std::nullopt : parse_row(line);
    if (row) {
      loads.push_back(*row);
    } else if (number == 1 ? line != kHeader : !line.empty()) {
      ++faults;
      at.fault("line " + std::to_string(number) + " is " +
                   (number == 1 ? "not the header" : "not layer, micro-batch, rank and load"),
               number == 1 ? std::string(kHeader) : "e.g. 3,0,17,1.25");
    }
  }
  if (number == 0) {
    at.fault(path + " is empty or no file", "a CSV file with the header " + std::string(kHeader));
  }
  return loads;
}

}  // namespace foretrain
