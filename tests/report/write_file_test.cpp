#include "foretrain/report.h"
#include "sim/base/random.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

namespace foretrain {
namespace {

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Reads with zlib's own reader, which takes plain files as they are.
std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::array<char, 4096> buffer{};
  for (int n = 1; n > 0;) {
    n = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
    text.append(buffer.data(), static_cast<std::size_t>(n > 0 ? n : 0));
  }
  gzclose(file);
  return text;
}

std::string noise(std::size_t size) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < size; ++i) {
    text += std::to_string(random_bits(3, 4, i));
  }
  return text;
}

std::string path_of(const std::string& name) {
  return testing::TempDir() + "foretrain_" + name;
}

TEST(WriteTextFile, WritesPlainText) {
  const std::string path = path_of("plain.json");
  ASSERT_TRUE(write_text_file(path, "{}\n").has_value());
  EXPECT_EQ(read_bytes(path), "{}\n");
  std::remove(path.c_str());
}

// What is zipped reads back, whatever its size beside the buffers.
TEST(WriteTextFile, ZippedTextReadsBack) {
  const std::string path = path_of("trace.json.gz");
  for (const std::size_t size : {0u, 1u, 1u << 18, 3'000'000u, 20'000'000u}) {
    std::string text = noise(std::min<std::size_t>(size, 1'000));
    while (text.size() < size) {
      text += text;
    }
    ASSERT_TRUE(write_text_file(path, text).has_value());
    EXPECT_EQ(read_gzip(path), text) << size;
  }
  std::remove(path.c_str());
}

// The same text is the same file: bytes 4 to 7 of a gzip header, its time, are zero.
TEST(WriteTextFile, ZipsWithoutTheTime) {
  const std::string path = path_of("time.json.gz");
  ASSERT_TRUE(write_text_file(path, noise(1000)).has_value());
  const std::string bytes = read_bytes(path);
  ASSERT_GT(bytes.size(), 10u);
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(bytes.substr(4, 4), std::string(4, '\0'));
  EXPECT_EQ(bytes[3], '\0') << "no name, no comment";
  std::remove(path.c_str());
}

TEST(WriteTextFile, SaysWhichFileCannotBeWritten) {
  const auto result = write_text_file("/no/such/folder/trace.json", "x");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, FaultKind::kFile);
  EXPECT_NE(result.error().list[0].message.find("/no/such/folder/trace.json"), std::string::npos);
}

// A disk that is full is told when the file is closed, not taken for success.
TEST(WriteTextFile, NoticesAFullDisk) {
  for (const char* text : {"x", "a longer text"}) {
    EXPECT_FALSE(write_text_file("/dev/full", text).has_value());
  }
}

}  // namespace
}  // namespace foretrain
