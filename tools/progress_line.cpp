#include "tools/progress_line.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace foretrain {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

ProgressLine::ProgressLine() {
  if (isatty(STDERR_FILENO) != 0) {
    watcher_ = std::thread([this] { watch(); });
  }
}

ProgressLine::~ProgressLine() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  over_.notify_all();
  if (watcher_.joinable()) {
    watcher_.join();
  }
}

void ProgressLine::tell(int done, int total) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
  told_ = Clock::now();
}

void ProgressLine::watch() {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return ended_; };
  bool shown = false;
  while (!over_.wait_for(lock, std::chrono::seconds(shown ? 1 : 2), ended)) {
    write();
    shown = true;
  }
  if (shown) {
    std::fputs("\r\x1b[K", stderr);
  }
}

/// Passes are taken to last equally long.
void ProgressLine::write() const {
  const Clock::time_point now = Clock::now();
  std::string line = "simulating";
  if (total_ > 0) {
    line += ": pass " + std::to_string(done_ + 1) + " of " + std::to_string(total_);
  }
  line += ", " + fixed(Seconds(now - started_).count(), 0) + " s so far";
  if (done_ > 0) {
    const double whole = Seconds(told_ - started_).count() / done_ * total_;
    const double left = std::max(0.0, whole - Seconds(now - started_).count());
    line += ", about " + fixed(left, 0) + " s to go";
  }
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
}

}  // namespace foretrain
