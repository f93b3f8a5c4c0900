#include "sim/engine/ledger.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Transfers kept before it is worth looking for some that the primary clock has passed.
constexpr std::size_t kHistory = 1;

}  // namespace

void Ledger::Sum::clear() {
  shared = 0;
  std::fill(own.begin(), own.end(), 0);
}

std::int64_t* Ledger::Sum::each(std::size_t n) {
  if (own.empty()) {
    own.resize(n, 0);
  }
  return own.data();
}

Ledger::Ledger(const Program& program, std::size_t instances)
    : program_(program),
      instances_(instances),
      window_start_(instances, 0),
      window_end_(instances, 0),
      busy_(program.busy_accounts.size()),
      exposed_(program.exposed_accounts.size()),
      transfer_(program.exposed_accounts.size()),
      member_wait_(program.exposed_accounts.size()),
      bytes_(program.exposed_accounts.size(), 0),
      history_(program.streams.size(), TransferHistory(instances)) {}

void Ledger::begin_step(bool measured, bool last) {
  measured_ = measured;
  last_ = last;
}

void Ledger::idle(Each earlier, Each later) {
  if (!closed_) {
    add_difference(idle_.each(instances_), later, earlier, instances_);
  }
}

void Ledger::gap(Each before, Each start, const std::vector<Cause>& causes) {
  for (std::size_t i = 0; i < instances_ && !closed_; ++i) {
    if (start[i] == before[i]) {
      continue;
    }
    std::int32_t stream = -1;
    for (const Cause& cause : causes) {
      if (cause.end[i] == start[i] && (stream < 0 || cause.stream < stream)) {
        stream = cause.stream;
      }
    }
    gap_of(i, before[i], start[i], stream);
  }
}

void Ledger::gap_of(std::size_t i, std::int64_t from, std::int64_t to, std::int32_t stream) {
  if (closed_) {
    return;
  }
  if (stream < 0) {
    host_.each(instances_)[i] += to - from;
    return;
  }
  std::int64_t exposed = 0;
  if (program_.streams[stream].role == StreamRole::kCollective) {
    exposed = history_[stream].covered(i, from, to);
    exposed_[program_.streams[stream].account].each(instances_)[i] += exposed;
  }
  idle_.each(instances_)[i] += to - from - exposed;
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

void Ledger::member_wait(std::int32_t account, Each arrival, Each begin) {
  if (measured_) {
    add_difference(member_wait_[account].each(instances_), begin, arrival, instances_);
  }
}

void Ledger::send(const Spent& spent, std::int64_t bytes) {
  if (measured_) {
    point_to_point_.add_spent(spent, instances_);
    point_to_point_bytes_ += bytes;
  }
}

void Ledger::receive(std::int64_t bytes) {
  if (measured_) {
    received_bytes_ += bytes;
  }
}

void Ledger::remember(std::int32_t stream, Each begin, Each end, Each primary_clock) {
  TransferHistory& history = history_[stream];
  while (history.size() > kHistory && history.first_is_past(primary_clock)) {
    history.drop_first();
  }
  history.add(begin, end);
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
