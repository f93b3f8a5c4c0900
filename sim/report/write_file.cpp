#include "foretrain/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <zlib.h>

namespace foretrain {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

bool write_all(std::FILE* file, const void* bytes, std::size_t size) {
  return std::fwrite(bytes, 1, size, file) == size;
}

/// A gzip member without name or time (zlib's default header), so that equal text is equal bytes.
bool write_gzip(std::FILE* file, const std::string& text) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  constexpr int kLevel = 6;
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return false;
  }
  std::vector<Bytef> buffer(std::size_t{1} << 18);
  constexpr std::size_t kChunk = std::size_t{1} << 24;
  bool good = true;
  int status = Z_OK;
  for (std::size_t at = 0; good && status != Z_STREAM_END;) {
    const std::size_t size = std::min(kChunk, text.size() - at);
    std::string chunk = text.substr(at, size);
    at += size;
    stream.next_in = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_in = static_cast<uInt>(size);
    do {
      stream.next_out = buffer.data();
      stream.avail_out = static_cast<uInt>(buffer.size());
      status = deflate(&stream, at == text.size() ? Z_FINISH : Z_NO_FLUSH);
      good = status != Z_STREAM_ERROR &&
             write_all(file, buffer.data(), buffer.size() - stream.avail_out);
    } while (good && stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return good;
}

}  // namespace

Expected<bool> write_text_file(const std::string& path, const std::string& text) {
  errno = 0;
  File file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) {
    return refuse_file(path, std::string("cannot be written: ") + std::strerror(errno));
  }
  const bool zipped = path.size() >= 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  const bool written =
      zipped ? write_gzip(file.get(), text) : write_all(file.get(), text.data(), text.size());
  if (!written || std::fclose(file.release()) != 0) {
    return refuse_file(path, std::string("cannot be written: ") + std::strerror(errno));
  }
  return true;
}

}  // namespace foretrain
