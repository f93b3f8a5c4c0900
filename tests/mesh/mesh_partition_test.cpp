#include "foretrain/mesh.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

constexpr const char* kDimensions[] = {
    "tp", "cp", "dp", "pp", "ep", "etp", "edp", "dp-cp", "model"};

std::int64_t expected_members(const MeshSize& size, const std::string& dimension) {
  const std::int64_t stage = size.tp * size.cp * size.dp;
  if (dimension == "tp")
    return size.tp;
  if (dimension == "cp")
    return size.cp;
  if (dimension == "dp")
    return size.dp;
  if (dimension == "pp")
    return size.pp;
  if (dimension == "ep")
    return size.ep;
  if (dimension == "etp")
    return size.etp;
  if (dimension == "edp")
    return stage / size.etp / size.ep;
  if (dimension == "dp-cp")
    return size.dp * size.cp;
  return size.tp * size.cp * size.pp;
}

/// Groups are of the right size, each rank is in exactly one, first ranks ascend.
void expect_partition(const DeviceMesh& mesh, const std::string& dimension) {
  std::vector<int> seen(static_cast<std::size_t>(mesh.ranks()), 0);
  std::int64_t last_first = -1;
  for (const ProcessGroup& group : mesh.groups(dimension)) {
    ASSERT_EQ(static_cast<std::int64_t>(group.ranks.size()),
              expected_members(mesh.size(), dimension));
    ASSERT_GT(group.ranks.front(), last_first);
    last_first = group.ranks.front();
    for (const std::int64_t rank : group.ranks) {
      ++seen[static_cast<std::size_t>(rank)];
    }
  }
  ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), mesh.ranks());
}

/// Coordinates and rank are inverse; a line's members differ in that coordinate alone.
void expect_bijection(const DeviceMesh& mesh) {
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    ASSERT_EQ(mesh.rank(mesh.coordinates(rank)), rank);
  }
  for (const ProcessGroup& group : mesh.groups("dp")) {
    const Coordinates first = mesh.coordinates(group.ranks.front());
    for (std::size_t at = 0; at < group.ranks.size(); ++at) {
      const Coordinates here = mesh.coordinates(group.ranks[at]);
      ASSERT_EQ(here.dp, static_cast<std::int64_t>(at));
      ASSERT_EQ(here.tp, first.tp);
      ASSERT_EQ(here.cp, first.cp);
      ASSERT_EQ(here.pp, first.pp);
    }
  }
}

void check(const MeshSize& size) {
  const Expected<DeviceMesh> mesh = DeviceMesh::build(size);
  ASSERT_TRUE(mesh.has_value());
  expect_bijection(*mesh);
  for (const char* dimension : kDimensions) {
    expect_partition(*mesh, dimension);
  }
}

// Rule: for every order and every legal folding of small worlds, each dimension's groups partition
// the ranks.
TEST(MeshPartition, EveryOrderAndFolding) {
  std::vector<std::string> words = {"cp", "dp", "ep", "pp", "tp"};
  int meshes = 0;
  do {
    MeshSize size;
    size.order = words[0] + "-" + words[1] + "-" + words[2] + "-" + words[3] + "-" + words[4];
    for (int degrees = 0; degrees < 81; ++degrees) {
      size.tp = 1 + degrees % 3;
      size.cp = 1 + degrees / 3 % 3;
      size.dp = 1 + degrees / 9 % 3;
      size.pp = 1 + degrees / 27;
      const std::int64_t stage = size.tp * size.cp * size.dp;
      for (size.etp = 1; size.etp <= stage; ++size.etp) {
        for (size.ep = 1; size.ep <= stage; ++size.ep) {
          const bool common = size.etp <= 2 && size.ep <= 6;
          if (common && stage % (size.etp * size.ep) == 0) {
            check(size);
            ++meshes;
          }
        }
      }
      if (HasFatalFailure())
        return;
    }
  } while (std::next_permutation(words.begin(), words.end()));
  EXPECT_GT(meshes, 10000);
}

}  // namespace
}  // namespace foretrain
