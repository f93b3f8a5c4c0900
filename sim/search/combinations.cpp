#include "sim/search/combinations.h"

#include "foretrain/schedule.h"
#include "sim/scenario/divides.h"
#include "sim/search/stages.h"

#include <algorithm>

namespace foretrain {
namespace {

std::vector<std::int64_t> expert_degrees(const ModelConfig& model) {
  std::vector<std::int64_t> degrees = {1};
  while (model.experts > 0 && experts_divide(model, degrees.back() * 2)) {
    degrees.push_back(degrees.back() * 2);
  }
  return degrees;
}

/// Takes a number apart, innermost axis first.
class Digits {
 public:
  explicit Digits(std::int64_t number) : rest_(static_cast<std::size_t>(number)) {}

  template <typename Value>
  const Value& next(const std::vector<Value>& axis) {
    const Value& value = axis[rest_ % axis.size()];
    rest_ /= axis.size();
    return value;
  }

 private:
  std::size_t rest_;
};

}  // namespace

const std::vector<std::int64_t>& Combinations::tp() {
  static const std::vector<std::int64_t> kDegrees = {1, 2, 4, 8};
  return kDegrees;
}

const std::vector<std::int64_t>& Combinations::cp() {
  static const std::vector<std::int64_t> kDegrees = {1, 2, 4, 8, 16, 32};
  return kDegrees;
}

const std::vector<std::int64_t>& Combinations::pp() {
  static const std::vector<std::int64_t> kDegrees = {1, 2, 4, 8, 16};
  return kDegrees;
}

Combinations::Combinations(const ModelConfig& model, const SearchAxes& axes)
    : axes_(axes), layers_(model.layers), ep_(expert_degrees(model)) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;  // so that the product stays in range
  for (const std::size_t size : {tp().size(),
                                 cp().size(),
                                 pp().size(),
                                 ep_.size(),
                                 axes.micro_batch_sizes.size(),
                                 axes.vpp.size(),
                                 axes.recompute_layers.size(),
                                 axes.shardings.size(),
                                 axes.schedules.size(),
                                 axes.orders.size()}) {
    count_ = std::min(count_ * static_cast<std::int64_t>(size), kMany);
  }
}

/// A schedule of two chunks a rank has them in place of the first value of vpp, so that one
/// combination has them; the value that stands for it elsewhere takes its place.
void Combinations::fit_schedule(Layout& layout) const {
  const ScheduleEntry* const entry = find_schedule(layout.schedule);
  if (entry == nullptr) {
    return;  // the axes are checked
  }
  layout.slices = entry->uses_slices ? kSearchSlices : 1;
  if (entry->chunks == 2) {
    const std::int64_t first = axes_.vpp.front();
    layout.vpp = layout.vpp == first ? 2 : layout.vpp == 2 ? first : layout.vpp;
  }
}

Layout Combinations::at(std::int64_t number, std::int64_t gpus) const {
  Digits digits(number);
  Layout layout;
  layout.order = digits.next(axes_.orders);
  layout.schedule = digits.next(axes_.schedules);
  layout.sharding = digits.next(axes_.shardings);
  layout.recompute_layers = digits.next(axes_.recompute_layers);
  layout.vpp = digits.next(axes_.vpp);
  layout.micro_batch_size = digits.next(axes_.micro_batch_sizes);
  layout.ep = digits.next(ep_);
  layout.pp = digits.next(pp());
  layout.cp = digits.next(cp());
  layout.tp = digits.next(tp());
  fit_schedule(layout);
  const std::int64_t ranks = layout.tp * layout.cp * layout.pp;
  layout.dp = gpus % ranks == 0 ? gpus / ranks : 0;
  if (layers_ % (layout.pp * layout.vpp) != 0) {
    if (const auto split = split_stages(layers_, layout.pp, layout.vpp, axes_.uneven_stages)) {
      layout.most_layers = split->most;
      layout.last_layers = split->last;
    }
  }
  if (layout.recompute_layers == kRecomputeAll) {
    const std::vector<std::int64_t>& stated = axes_.recompute_layers;
    const std::int64_t all = layout.most_layers > 0 ? layout.most_layers : layers_ / layout.pp;
    const bool twice = std::find(stated.begin(), stated.end(), all) != stated.end();
    layout.recompute_layers = twice ? kRecomputeAll : all;
  }
  return layout;
}

}  // namespace foretrain
