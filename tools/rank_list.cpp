#include "tools/rank_list.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

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

}  // namespace

Expected<std::vector<std::int64_t>> parse_rank_list(const std::string& text,
                                                    std::int64_t gpus,
                                                    const std::string& option) {
  std::vector<std::int64_t> ranks;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view item = std::string_view(text).substr(at, comma - at);
    const std::size_t dash = item.find('-');
    const std::optional<std::int64_t> first = number(item.substr(0, dash));
    const std::optional<std::int64_t> last =
        dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return refuse({"",
                     option + ": \"" + std::string(item) + "\" is no rank or range of ranks",
                     "write for example 0,8-15"});
    }
    if (*last >= gpus) {
      return refuse({"",
                     option + ": rank " + std::to_string(*last) + " is not in this cluster",
                     "ranks go from 0 to " + std::to_string(gpus - 1)});
    }
    for (std::int64_t rank = *first; rank <= *last; ++rank) {
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
        ranks.push_back(rank);
      }
    }
    at = comma + 1;
  }
  return ranks;
}

}  // namespace foretrain
