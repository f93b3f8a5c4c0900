#include "tools/rank_list.h"

#include <algorithm>
#include <charconv>

namespace foretrain {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

struct RankRange {
  std::string_view text;
  std::int64_t first = 0, last = 0;
};

std::optional<RankRange> range_of(std::string_view item) {
  const auto range = number_range(item);
  return range ? std::optional(RankRange{item, range->first, range->second}) : std::nullopt;
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

/// Nothing where no earlier range holds a rank of this one.
std::string twice(const RankRange& range, const std::vector<RankRange>& earlier) {
  for (const RankRange& other : earlier) {
    const std::int64_t common = std::max(range.first, other.first);
    if (common <= std::min(range.last, other.last)) {
      const bool alike = range.text == other.text;
      return "rank " + std::to_string(common) + " is named twice, " +
             (alike ? "both times as " + quoted(range.text)
                    : "in " + quoted(other.text) + " and in " + quoted(range.text));
    }
  }
  return "";
}

}  // namespace

std::optional<std::pair<std::int64_t, std::int64_t>> number_range(std::string_view item) {
  const std::size_t dash = item.find('-');
  const std::optional<std::int64_t> first = number(item.substr(0, dash));
  const std::optional<std::int64_t> last =
      dash == std::string_view::npos ? first : number(item.substr(dash + 1));
  if (!first || !last || *last < *first) {
    return std::nullopt;
  }
  return std::pair(*first, *last);
}

Expected<std::vector<std::int64_t>> parse_rank_list(const std::string& text,
                                                    std::int64_t gpus,
                                                    const std::string& option) {
  std::vector<Diagnostic> faults;
  std::vector<RankRange> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view item = std::string_view(text).substr(at, comma - at);
    at = comma + 1;
    const std::optional<RankRange> range = range_of(item);
    if (!range) {
      faults.push_back({"",
                        option + ": " + quoted(item) + " is no rank or range of ranks",
                        "write for example 0,8-15"});
    } else if (range->last >= gpus) {
      faults.push_back(
          {"",
           option + ": rank " + std::to_string(range->last) + " is not in this cluster",
           "ranks go from 0 to " + std::to_string(gpus - 1)});
    } else if (const std::string again = twice(*range, ranges); !again.empty()) {
      faults.push_back({"", option + ": " + again, "name each rank once"});
    } else {
      ranges.push_back(*range);
    }
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  std::vector<std::int64_t> ranks;
  for (const RankRange& range : ranges) {
    for (std::int64_t rank = range.first; rank <= range.last; ++rank) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace foretrain
