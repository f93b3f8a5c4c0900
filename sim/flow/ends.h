#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace foretrain {

/// A time in ps with its fraction: rates change when a transfer really ends, though the world hears
/// of it at the next whole picosecond.
struct Moment {
  std::int64_t whole = 0;
  double part = 0;  ///< 0 .. 1

  auto operator<=>(const Moment&) const = default;
  double until(const Moment& later) const {
    return static_cast<double>(later.whole - whole) + (later.part - part);
  }
  Moment after(double picoseconds) const {
    const double sum = part + picoseconds;
    const double floor = std::floor(sum);
    return {whole + static_cast<std::int64_t>(floor), sum - floor};
  }
  std::int64_t rounded_up() const { return part > kRounding ? whole + 1 : whole; }

  /// What rounding of doubles may add to a whole number of picoseconds.
  static constexpr double kRounding = 1e-3;
};

/// When transfers end, next first. One whose end moves is put in again: `version` tells which end
/// counts. Those put in one after the other for the same moment stand in one row.
class Ends {
 public:
  struct End {
    std::int32_t place = 0;
    std::uint32_t version = 0;
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return size_; }
  const Moment& next() const { return heap_.front().time; }
  const std::vector<End>& row() const { return rows_[heap_.front().row]; }

  void put(const Moment& time, const End& end) {
    ++size_;
    if (last_ != kNone && last_time_ == time) {
      rows_[last_].push_back(end);
      return;
    }
    if (free_.empty()) {
      free_.push_back(rows_.size());
      rows_.emplace_back();
    }
    last_ = free_.back();
    last_time_ = time;
    free_.pop_back();
    rows_[last_].push_back(end);
    heap_.push_back({time, sequence_++, last_});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void drop_row() {
    const std::size_t row = heap_.front().row;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    release(row);
  }

  /// Keeps the ends that count.
  template <class Counts>
  void drop_old(Counts counts) {
    std::erase_if(heap_, [&](const Entry& entry) {
      std::vector<End>& row = rows_[entry.row];
      size_ -= std::erase_if(row, [&counts](const End& end) { return !counts(end); });
      if (row.empty()) {
        release(entry.row);
        return true;
      }
      return false;
    });
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Entry {
    Moment time;
    std::int64_t sequence = 0;
    std::size_t row = 0;
    auto operator<=>(const Entry&) const = default;
  };

  void release(std::size_t row) {
    size_ -= rows_[row].size();
    rows_[row].clear();
    free_.push_back(row);
    last_ = row == last_ ? kNone : last_;
  }

  std::vector<Entry> heap_;
  std::vector<std::vector<End>> rows_;
  std::vector<std::size_t> free_;
  std::size_t size_ = 0;
  std::size_t last_ = kNone;  ///< the row put in last
  Moment last_time_;
  std::int64_t sequence_ = 0;
};

}  // namespace foretrain
