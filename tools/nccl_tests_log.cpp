#include "tools/nccl_tests_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <span>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::int64_t kLargestSize = std::int64_t{1} << 53;
constexpr double kMicro = 1e-6;
/// Columns of one result: time, algbw, busbw, #wrong.
constexpr std::size_t kResultColumns = 4;

Words words_of(std::string_view line) {
  Words words;
  constexpr std::string_view kBlank = " \t\r";
  std::size_t at = line.find_first_not_of(kBlank);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

std::optional<std::int64_t> whole(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool read = error == std::errc{} && end == word.data() + word.size();
  return read ? std::optional(value) : std::nullopt;
}

/// A time in microseconds as seconds; nothing for N/A and for what is no time.
std::optional<double> time_of(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value) ||
      value <= 0) {
    return std::nullopt;
  }
  return value * kMicro;
}

/// "0: ...", "[1,0]<stdout>: ...": who wrote the line, put there by the launcher.
std::string_view without_prefix(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  const std::size_t colon = line.find(':');
  if (start == std::string_view::npos || colon == std::string_view::npos) {
    return line;
  }
  const std::string_view who = line.substr(start, colon - start);
  const bool number = whole(who).has_value();
  const bool tagged = !who.empty() && who.front() == '[' && who.find(']') != std::string_view::npos;
  return number || tagged ? line.substr(colon + 1) : line;
}

/// Where the first of the result columns stands: after size, count, type and what the version of
/// nccl-tests prints of the operator and the root. The header tells, where it fits the row.
std::size_t first_result(const Words& row, const Words& header) {
  if (header.size() == row.size()) {
    const auto time = std::find(header.begin(), header.end(), "time");
    if (time != header.end()) {
      return static_cast<std::size_t>(time - header.begin());
    }
  }
  const std::size_t both = 2 * kResultColumns;
  return row.size() >= 3 + both ? row.size() - both : row.size() - kResultColumns;
}

std::optional<MeasuredSize> size_of_row(const Words& row, const Words& header) {
  if (row.size() < 3 + kResultColumns) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> bytes = whole(row[0]);
  if (!bytes || *bytes <= 0 || *bytes > kLargestSize || !whole(row[1])) {
    return std::nullopt;
  }
  const std::size_t first = first_result(row, header);
  MeasuredSize size;
  size.bytes = *bytes;
  size.out_of_place_s = time_of(row[first]);
  if (first + kResultColumns < row.size()) {
    size.in_place_s = time_of(row[first + kResultColumns]);
  }
  return size;
}

class TextReader {
 public:
  void line(std::string_view raw) {
    if (raw.find("NCCL INFO") != std::string_view::npos ||
        raw.find("NCCL WARN") != std::string_view::npos) {
      return;
    }
    const Words words = words_of(without_prefix(raw));
    name_of_op(raw);
    if (words.empty()) {
      return;
    }
    if (words[0].front() == '#') {
      comment(words);
    } else if (const std::optional<MeasuredSize> size = size_of_row(words, header_)) {
      log.sizes.push_back(*size);
    }
  }

  NcclTestsLog log;

 private:
  void comment(const Words& words) {
    if (words.size() > 2 && words[1] == "Rank" && whole(words[2])) {
      ranks_.insert(*whole(words[2]));
      log.ranks = static_cast<std::int64_t>(ranks_.size());
    }
    if (words.size() > 4 && words[1] == "size" && words[2] == "count") {
      header_.assign(words.begin() + 1, words.end());
    }
  }

  /// "all_reduce_perf" in a command line or a banner.
  void name_of_op(std::string_view line) {
    const std::size_t end = line.find("_perf");
    if (end == std::string_view::npos || !log.op.empty()) {
      return;
    }
    std::size_t begin = end;
    while (begin > 0 && (std::isalpha(static_cast<unsigned char>(line[begin - 1])) != 0 ||
                         line[begin - 1] == '_')) {
      --begin;
    }
    log.op = std::string(line.substr(begin, end - begin));
  }

  Words header_;
  std::set<std::int64_t> ranks_;
};

std::optional<double> json_time(const nlohmann::json& row, const char* place) {
  if (!row.contains(place) || !row[place].is_object() || !row[place].contains("time")) {
    return std::nullopt;
  }
  const nlohmann::json& time = row[place]["time"];
  const double value = time.is_number() ? time.get<double>() : 0.0;
  return std::isfinite(value) && value > 0 ? std::optional(value * kMicro) : std::nullopt;
}

NcclTestsLog from_json(const nlohmann::json& file) {
  NcclTestsLog log;
  const auto results = file.find("results");
  if (results == file.end() || !results->is_array()) {
    return log;
  }
  for (const nlohmann::json& row : *results) {
    if (!row.is_object() || !row.contains("size") || !row["size"].is_number_integer()) {
      continue;
    }
    const auto bytes = row["size"].get<std::int64_t>();
    if (bytes > 0 && bytes <= kLargestSize) {
      log.sizes.push_back({bytes, json_time(row, "out_of_place"), json_time(row, "in_place")});
    }
  }
  const auto devices = file.find("devices");
  if (devices != file.end() && devices->is_array()) {
    log.ranks = static_cast<std::int64_t>(devices->size());
  }
  return log;
}

}  // namespace

Expected<NcclTestsLog> read_nccl_tests(std::string_view text) {
  NcclTestsLog log;
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, false);
  if (file.is_object()) {
    log = from_json(file);
  } else {
    TextReader reader;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      reader.line(text.substr(at, end - at));
      at = end + 1;
    }
    log = std::move(reader.log);
  }
  for (const MeasuredSize& size : log.sizes) {
    if (size.seconds() <= 0) {
      log.untimed.push_back(size.bytes);
    }
  }
  std::erase_if(log.sizes, [](const MeasuredSize& size) { return size.seconds() <= 0; });
  if (log.sizes.empty()) {
    return refuse({"/measured",
                   "no line of this file is a size with a time, as nccl-tests prints them",
                   "give the output of e.g. all_reduce_perf -b 1M -e 8G -f 2, text or -J"});
  }
  const auto smaller = [](const MeasuredSize& a, const MeasuredSize& b) {
    return a.bytes < b.bytes;
  };
  const auto same = [](const MeasuredSize& a, const MeasuredSize& b) { return a.bytes == b.bytes; };
  std::stable_sort(log.sizes.begin(), log.sizes.end(), smaller);
  log.sizes.erase(std::unique(log.sizes.begin(), log.sizes.end(), same), log.sizes.end());
  return log;
}

}  // namespace foretrain
