#include "tools/schedule_input.h"

#include "sim/base/data_directory.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace foretrain {
namespace {

std::int32_t sized(const std::optional<std::int64_t>& value,
                   const char* pointer,
                   std::int32_t otherwise,
                   std::vector<Diagnostic>& faults) {
  const std::int64_t size = value.value_or(otherwise);
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (value && (size < 1 || size > most)) {
    faults.push_back({pointer, std::to_string(size) + " is not between 1 and 2147483647", ""});
    return 1;
  }
  return static_cast<std::int32_t>(size);
}

Expected<Schedule> named_schedule(const ScheduleRequest& request) {
  const ScheduleEntry* const entry = find_schedule(request.name);
  std::vector<Diagnostic> faults;
  if (entry == nullptr) {
    faults = make_schedule(request.name, {}).error().list;
  }
  for (const auto& [value, pointer] :
       {std::pair{request.pp, "/pp"}, std::pair{request.micro_batches, "/micro_batches"}}) {
    if (!value) {
      faults.push_back({pointer, "needed: it is part of the schedule's size", ""});
    }
  }
  const std::int32_t chunks = entry != nullptr && entry->chunks > 0 ? entry->chunks : 1;
  ScheduleSize size;
  size.pp = sized(request.pp, "/pp", 1, faults);
  size.micro_batches = sized(request.micro_batches, "/micro_batches", 1, faults);
  size.vpp = sized(request.vpp, "/vpp", chunks, faults);
  size.group = sized(request.group, "/group", 0, faults);
  size.slices = sized(request.slices, "/slices", 1, faults);
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return make_schedule(request.name, size);
}

/// The file's bytes; refuses what is longer than lists of the most actions would be.
Expected<std::string> file_text(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 29;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostBytes) {
      return refuse({"/schedule", path + " is longer than 512 MiB", "shorter lists"});
    }
  }
  if (!file.eof() || file.bad()) {
    return refuse_file(path, errno != 0 ? std::strerror(errno) : "cannot be read");
  }
  return text;
}

Expected<Schedule> file_schedule(const ScheduleRequest& request) {
  const Expected<std::string> text = file_text(request.name);
  if (!text) {
    return tl::unexpected<Faults>(text.error());
  }
  Expected<Schedule> schedule = parse_schedule_csv(*text);
  if (!schedule) {
    return schedule;
  }
  schedule->name = request.name;
  std::vector<Diagnostic> faults;
  const auto compare = [&](const std::optional<std::int64_t>& value,
                           const char* pointer,
                           std::int32_t held) {
    if (value && *value != held) {
      faults.push_back({pointer,
                        std::to_string(*value) + " differs from the file's " + std::to_string(held),
                        "leave it out: the lists tell"});
    }
  };
  compare(request.pp, "/pp", schedule->size.pp);
  compare(request.micro_batches, "/micro_batches", schedule->size.micro_batches);
  compare(request.vpp, "/vpp", schedule->size.vpp);
  compare(request.slices, "/slices", schedule->size.slices);
  if (request.group) {
    faults.push_back({"/group", "a file's lists have no group", "leave it out"});
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return schedule;
}

}  // namespace

Expected<Schedule> requested_schedule(const ScheduleRequest& request) {
  return looks_like_path(request.name) ? file_schedule(request) : named_schedule(request);
}

}  // namespace foretrain
