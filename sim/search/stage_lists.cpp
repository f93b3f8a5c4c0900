#include "sim/search/stage_lists.h"

#include <algorithm>

namespace foretrain {
namespace {

using List = std::vector<std::int64_t>;

/// What is left over goes to stages around the middle, which holds neither embedding nor head.
List most_even(std::int64_t layers, std::int64_t stages) {
  List list(static_cast<std::size_t>(stages), layers / stages);
  const std::int64_t over = layers % stages;
  const std::int64_t first = (stages - over + 1) / 2;
  for (std::int64_t stage = first; stage < first + over; ++stage) {
    ++list[static_cast<std::size_t>(stage)];
  }
  return list;
}

/// Moves a layer to the neighbour that is nearer to the middle.
bool move_inwards(List& list, bool first) {
  const std::size_t from = first ? 0 : list.size() - 1;
  const std::size_t to = first ? 1 : list.size() - 2;
  if (list.size() < 3 || list[from] == 0) {
    return false;
  }
  --list[from];
  ++list[to];
  return true;
}

}  // namespace

std::vector<List> stage_lists(std::int64_t layers, std::int64_t stages) {
  std::vector<List> lists = {most_even(layers, stages)};
  const auto add = [&lists](const List& list) {
    if (std::find(lists.begin(), lists.end(), list) == lists.end()) {
      lists.push_back(list);
    }
  };
  for (const bool first : {true, false}) {
    List list = lists.front();
    if (move_inwards(list, first)) {
      add(list);
    }
  }
  List both = lists.front();
  if (move_inwards(both, true) && move_inwards(both, false)) {
    add(both);
  }
  return lists;
}

}  // namespace foretrain
