#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace foretrain {

/// One line on a terminal's standard error while work takes longer than two seconds: how far it is
/// and how long it may still take. Elsewhere nothing is written. The line is wiped at the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `done` of `total` passes are over and the next begins.
  void tell(int done, int total);

 private:
  using Clock = std::chrono::steady_clock;
  void watch();
  void write() const;

  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false;
  int done_ = 0, total_ = 0;
  Clock::time_point started_ = Clock::now();
  Clock::time_point told_ = started_;
  std::thread watcher_;
};

}  // namespace foretrain
