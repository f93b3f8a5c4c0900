#include "foretrain/mesh.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

std::vector<std::string> pointers(const MeshSize& size) {
  const Expected<DeviceMesh> mesh = DeviceMesh::build(size);
  std::vector<std::string> all;
  if (!mesh) {
    for (const Diagnostic& fault : mesh.error().list) {
      all.push_back(fault.pointer);
    }
  }
  return all;
}

MeshSize with_order(const std::string& order) {
  MeshSize size;
  size.tp = size.dp = size.pp = 2;
  size.order = order;
  return size;
}

using Pointers = std::vector<std::string>;

// Rule: every dimension of degree above 1 stands once; others may be left out.
TEST(MeshFaults, Order) {
  EXPECT_EQ(pointers(with_order("tp-dp-pp")), Pointers{});
  EXPECT_EQ(pointers(with_order("tp-dp")), Pointers{"/parallelism/order"});
  EXPECT_EQ(pointers(with_order("tp-dp-pp-tp")), Pointers{"/parallelism/order"});
  EXPECT_EQ(pointers(with_order("tp-dp-pp-cp-cp")), Pointers{"/parallelism/order"});
  EXPECT_EQ(pointers(with_order("tp-dp-pp-xp")), Pointers{"/parallelism/order"});
  EXPECT_EQ(pointers(with_order("tp-dp-pp-")), Pointers{"/parallelism/order"});
  EXPECT_EQ(pointers(with_order("")).size(), 3U) << "tp, dp and pp are each missing";
}

TEST(MeshFaults, ExpertsMustStandInTheOrderToo) {
  MeshSize size = with_order("tp-dp-pp");
  size.ep = 2;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism/order"});
}

// Rule: tp * cp * dp = etp * ep * edp (4 ranks per stage here).
TEST(MeshFaults, Experts) {
  MeshSize size = with_order("tp-cp-ep-dp-pp");
  size.ep = 3;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism/ep"});
  size.ep = 8;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism/ep"});
  size.ep = 4;
  EXPECT_EQ(pointers(size), Pointers{});
  size.etp = 2;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism/ep"});
  size.ep = 1;
  size.etp = 3;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism/etp"});
}

// Rule: degrees are at least 1, the world is bounded, and all faults come at once.
TEST(MeshFaults, Degrees) {
  MeshSize size;
  size.tp = 0;
  size.pp = -2;
  size.etp = 0;
  size.gpus_per_node = 0;
  EXPECT_EQ(pointers(size),
            (Pointers{"/parallelism/tp", "/parallelism/pp", "/parallelism/etp", "/gpus_per_node"}));
  size = {};
  size.dp = std::int64_t{1} << 53;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism/dp"});
  size.dp = size.tp = size.pp = size.cp = 1 << 19;
  EXPECT_EQ(pointers(size), Pointers{"/parallelism"});
}

TEST(MeshFaults, UnknownWordGetsASuggestion) {
  MeshSize size;
  size.order = "tp-cp-edp";
  const Expected<DeviceMesh> mesh = DeviceMesh::build(size);
  ASSERT_FALSE(mesh.has_value());
  EXPECT_NE(mesh.error().list.front().hint.find("\"ep\""), std::string::npos);
}

}  // namespace
}  // namespace foretrain
