#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace foretrain {

/// The latest transfers of one stream, in time order, for all instances of a cohort: a ring of
/// their begins and ends.
class TransferHistory {
 public:
  explicit TransferHistory(std::size_t instances) : n_(instances) {}

  std::size_t size() const { return size_; }

  void add(const std::int64_t* begin, const std::int64_t* end) {
    if (size_ == slots_) {
      grow();
    }
    const std::size_t slot = slot_of(size_++);
    std::copy_n(begin, n_, times_.data() + slot * 2 * n_);
    std::copy_n(end, n_, times_.data() + (slot * 2 + 1) * n_);
  }

  void drop_first() {
    first_ = slot_of(1);
    --size_;
  }

  /// The first transfer ended before the clocks of all instances.
  bool first_is_past(const std::int64_t* clocks) const {
    const std::int64_t* ends = times_.data() + (first_ * 2 + 1) * n_;
    for (std::size_t i = 0; i < n_; ++i) {
      if (ends[i] > clocks[i]) {
        return false;
      }
    }
    return true;
  }

  /// How much of the interval the transfers of one instance cover.
  std::int64_t covered(std::size_t instance, std::int64_t from, std::int64_t to) const {
    std::int64_t sum = 0;
    for (std::size_t left = size_; left > 0; --left) {
      const std::int64_t* times = times_.data() + slot_of(left - 1) * 2 * n_ + instance;
      const std::int64_t begin = times[0];
      const std::int64_t end = times[n_];
      sum += std::max<std::int64_t>(0, std::min(to, end) - std::max(from, begin));
      if (begin <= from) {
        break;  // those before ended by then
      }
    }
    return sum;
  }

 private:
  /// Of the k-th transfer kept. The ring's size is a power of two.
  std::size_t slot_of(std::size_t k) const { return (first_ + k) & (slots_ - 1); }

  void grow() {
    std::rotate(times_.begin(), times_.begin() + first_ * 2 * n_, times_.end());
    first_ = 0;
    slots_ = std::max<std::size_t>(4, slots_ * 2);
    times_.resize(slots_ * 2 * n_);
  }

  std::size_t n_;
  std::size_t slots_ = 0, first_ = 0, size_ = 0;
  std::vector<std::int64_t> times_;  ///< [slot][begin, end][instance]
};

}  // namespace foretrain
