#include "sim/engine/ledger.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Transfers kept before it is worth looking for some that the primary clock has passed.
constexpr std::size_t kHistory = 32;

}  // namespace

void Ledger::Sum::clear() {
  shared = 0;
  std::fill(own.begin(), own.end(), 0);
}

Times& Ledger::Sum::each(std::size_t n) {
  if (own.empty()) {
    own.resize(n, 0);
  }
  return own;
}

Ledger::Ledger(const Program& program, std::size_t instances, std::int32_t list_length)
    : program_(program),
      instances_(instances),
      list_length_(list_length),
      window_start_(instances, 0),
      window_end_(instances, 0),
      busy_(program.busy_accounts.size()),
      exposed_(program.exposed_accounts.size()),
      transfer_(program.exposed_accounts.size()),
      member_wait_(program.exposed_accounts.size()),
      bytes_(program.exposed_accounts.size(), 0),
      history_(program.streams.size()) {}

void Ledger::begin_step(std::int64_t step, bool measured, bool last) {
  step_ = step;
  measured_ = measured;
  last_ = last;
}

void Ledger::note_idle(const Times& earlier, const Times& later) {
  if (!closed_) {
    add_difference(idle_.each(instances_), later, earlier);
  }
}

void Ledger::gap(const Times& before, const Times& start, const std::vector<Cause>& causes) {
  if (closed_) {
    return;
  }
  for (std::size_t i = 0; i < instances_; ++i) {
    if (start[i] == before[i]) {
      continue;
    }
    std::int32_t stream = -1;
    for (const Cause& cause : causes) {
      if ((*cause.end)[i] == start[i] && (stream < 0 || cause.stream < stream)) {
        stream = cause.stream;
      }
    }
    const std::int64_t length = start[i] - before[i];
    if (stream < 0) {
      host_.each(instances_)[i] += length;
      continue;
    }
    std::int64_t exposed = 0;
    if (program_.streams[stream].role == StreamRole::kCollective) {
      exposed = covered(stream, i, before[i], start[i]);
      exposed_[program_.streams[stream].account].each(instances_)[i] += exposed;
    }
    idle_.each(instances_)[i] += length - exposed;
  }
}

std::int64_t Ledger::covered(std::int32_t stream,
                             std::size_t i,
                             std::int64_t from,
                             std::int64_t to) const {
  std::int64_t sum = 0;
  const std::deque<Transfer>& history = history_[stream];
  for (auto transfer = history.rbegin(); transfer != history.rend(); ++transfer) {
    if (transfer->end[i] <= from) {
      break;
    }
    const std::int64_t begin = std::max(from, transfer->begin[i]);
    sum += std::max<std::int64_t>(0, std::min(to, transfer->end[i]) - begin);
  }
  return sum;
}

void Ledger::busy(std::int32_t account, std::int64_t duration) {
  if (!closed_) {
    busy_[account].shared += duration;
  }
}

void Ledger::busy(std::int32_t account, const Times& durations) {
  if (!closed_) {
    add(busy_[account].each(instances_), durations);
  }
}

void Ledger::step_end(const Times& end) {
  if (!measured_) {
    window_start_ = end;
    for (Sum& sum : busy_) {
      sum.clear();
    }
    for (Sum& sum : exposed_) {
      sum.clear();
    }
    host_.clear();
    idle_.clear();
  } else if (last_) {
    window_end_ = end;
    closed_ = true;
  }
}

void Ledger::transfer(std::int32_t account, std::int64_t duration) {
  if (measured_) {
    transfer_[account].shared += duration;
  }
}

void Ledger::transfer(std::int32_t account, const Times& durations) {
  if (measured_) {
    add(transfer_[account].each(instances_), durations);
  }
}

void Ledger::member_wait(std::int32_t account, const Times& arrival, const Times& begin) {
  if (measured_) {
    add_difference(member_wait_[account].each(instances_), begin, arrival);
  }
}

void Ledger::sent(std::int32_t account, std::int64_t bytes) {
  if (measured_) {
    bytes_[account] += bytes;
  }
}

void Ledger::send(std::int64_t duration, std::int64_t bytes) {
  if (measured_) {
    point_to_point_.shared += duration;
    point_to_point_bytes_ += bytes;
  }
}

void Ledger::send(const Times& durations, std::int64_t bytes) {
  if (measured_) {
    add(point_to_point_.each(instances_), durations);
    point_to_point_bytes_ += bytes;
  }
}

void Ledger::receive(std::int64_t bytes) {
  if (measured_) {
    received_bytes_ += bytes;
  }
}

void Ledger::remember(std::int32_t stream,
                      std::int32_t task,
                      const Times& begin,
                      const Times& end,
                      const Times& primary_clock) {
  std::deque<Transfer>& history = history_[stream];
  while (history.size() > kHistory) {
    bool passed = true;
    for (std::size_t i = 0; i < instances_ && passed; ++i) {
      passed = history.front().end[i] <= primary_clock[i];
    }
    if (!passed) {
      break;
    }
    drop_front(history);
  }
  if (spare_.empty()) {
    spare_.emplace_back();
  }
  spare_.back().task = step_ * list_length_ + task;
  spare_.back().begin = begin;
  spare_.back().end = end;
  history.push_back(std::move(spare_.back()));
  spare_.pop_back();
}

void Ledger::forget(std::int32_t stream, std::int32_t task, bool previous_step) {
  std::deque<Transfer>& history = history_[stream];
  const std::int64_t last = (step_ - (previous_step ? 1 : 0)) * list_length_ + task;
  while (!history.empty() && history.front().task <= last) {
    drop_front(history);
  }
}

void Ledger::drop_front(std::deque<Transfer>& history) {
  spare_.push_back(std::move(history.front()));
  history.pop_front();
}

RankAccount Ledger::account(std::size_t i) const {
  RankAccount result;
  const auto fill = [i](const std::vector<Sum>& sums, std::vector<Duration>& out) {
    for (const Sum& sum : sums) {
      out.emplace_back(sum.at(i));
    }
  };
  result.window = Duration{window_end_[i] - window_start_[i]};
  fill(busy_, result.busy);
  fill(exposed_, result.exposed);
  fill(transfer_, result.transfer);
  fill(member_wait_, result.member_wait);
  result.bytes = bytes_;
  result.point_to_point = Duration{point_to_point_.at(i)};
  result.point_to_point_bytes = point_to_point_bytes_;
  result.received_bytes = received_bytes_;
  result.host = Duration{host_.at(i)};
  result.idle = Duration{idle_.at(i)};
  return result;
}

}  // namespace foretrain
