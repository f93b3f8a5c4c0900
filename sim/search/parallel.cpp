#include "sim/search/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace foretrain {

void for_each_number(int threads,
                     std::int64_t count,
                     const std::function<void(std::int64_t)>& work) {
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t wanted = threads > 0 ? threads : std::max<std::int64_t>(cores, 1);
  const std::int64_t used = std::min(wanted, count);
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  const auto labour = [&] {
    try {
      for (std::int64_t number = next++; number < count; number = next++) {
        work(number);
      }
    } catch (...) {  // out of memory: the caller's thread reports it
      const std::lock_guard lock(failing);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t thread = 1; thread < used; ++thread) {
    others.emplace_back(labour);
  }
  labour();
  for (std::thread& other : others) {
    other.join();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace foretrain
