#pragma once

#include <cstdint>
#include <vector>

namespace foretrain {

/// The task ends that somebody reads, of the calls under way of one cohort. A call's memory is used
/// again when all of its tasks are done and everybody has read what they wait for.
class OpenCalls {
 public:
  OpenCalls(std::size_t calls, std::size_t instances)
      : buffer_of_(calls, -1), instances_(instances) {}

  /// The ends, [row][instance]; opens the call unless it is. `uses`: its tasks and readers.
  std::int64_t* open(std::int32_t call, std::size_t rows, std::int32_t uses) {
    if (buffer_of_[call] < 0) {
      take_buffer(call, rows, uses);
    }
    return buffers_[buffer_of_[call]].ends.data();
  }

  /// The ends in one row of an open call.
  std::int64_t* end(std::int32_t call, std::int32_t row) {
    return buffers_[buffer_of_[call]].ends.data() + row * instances_;
  }

  void release(std::int32_t call, std::int32_t uses) {
    Buffer& buffer = buffers_[buffer_of_[call]];
    buffer.uses -= uses;
    if (buffer.uses == 0) {
      free_.push_back(buffer_of_[call]);
      buffer_of_[call] = -1;
    }
  }

 private:
  struct Buffer {
    std::vector<std::int64_t> ends;
    std::int32_t uses = 0;
  };

  void take_buffer(std::int32_t call, std::size_t rows, std::int32_t uses) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(buffers_.size()));
      buffers_.emplace_back();
    }
    buffer_of_[call] = free_.back();
    free_.pop_back();
    Buffer& buffer = buffers_[buffer_of_[call]];
    buffer.uses = uses;
    if (buffer.ends.size() < rows * instances_) {
      buffer.ends.resize(rows * instances_);
    }
  }

  std::vector<std::int32_t> buffer_of_;  ///< per call; -1: not open
  std::vector<Buffer> buffers_;
  std::vector<std::int32_t> free_;
  std::size_t instances_;
};

}  // namespace foretrain
