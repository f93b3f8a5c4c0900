#include "tests/support/node_text.h"

#include "foretrain/node_description.h"

#include <string>

#include <gtest/gtest.h>

/// Rule: the matrix of `nvidia-smi topo -m` is read as it is in every form it is printed in, and a
/// matrix that is not whole or not symmetric is refused by line.
namespace foretrain {
namespace {

using Interconnect = NodeDescription::Interconnect;
using test::matrix;
using test::MatrixText;

NodeDescription read(const std::string& text) {
  EXPECT_TRUE(is_topo_matrix(text)) << text;
  const Expected<NodeDescription> read = parse_topo_matrix(text);
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().list.front().message);
  return read.value_or(NodeDescription());
}

std::string faults_of(const std::string& text) {
  const Expected<NodeDescription> read = parse_topo_matrix(text);
  std::string all;
  for (const Diagnostic& fault : read ? std::vector<Diagnostic>{} : read.error().list) {
    all += fault.message + "; " + fault.hint + "\n";
  }
  return all;
}

// A GPU has at most 18 NVLinks: NV12 to each of 7 others can only be the same 12 through switches.
TEST(TopoMatrix, EightA100WithSwitches) {
  const NodeDescription node = read(matrix(8, "NV12", 4).text());
  EXPECT_EQ(node.interconnect, Interconnect::kNvSwitch);
  EXPECT_EQ(node.nvlinks_per_gpu(), 12);
  EXPECT_EQ(node.nics.size(), 4U);
  EXPECT_EQ(node.nics_in_use(), 4);
  EXPECT_EQ(node.gpus[0].nic, 0);
  EXPECT_EQ(node.gpus[7].nic, 3);
  EXPECT_EQ(node.gpus[7].nic_path, PciePath::kPix);
  EXPECT_EQ(node.nics[3].name, "mlx5_7");
  EXPECT_EQ(node.domains, 2);
  EXPECT_EQ(node.gpus[3].domain, 0);
  EXPECT_EQ(node.gpus[4].domain, 1);
}

TEST(TopoMatrix, EightH100WithSwitches) {
  const NodeDescription node = read(matrix(8, "NV18", 8).text());
  EXPECT_EQ(node.interconnect, Interconnect::kNvSwitch);
  EXPECT_EQ(node.nvlinks_per_gpu(), 18);
  EXPECT_EQ(node.nics_in_use(), 8);
}

TEST(TopoMatrix, FourGpusInAMesh) {
  const NodeDescription node = read(matrix(4, "NV4", 4).text());
  EXPECT_EQ(node.interconnect, Interconnect::kMesh);
  EXPECT_EQ(node.nvlinks_per_gpu(), 12);
  EXPECT_EQ(node.nvlinks[1][2], 4);
  EXPECT_EQ(node.nvlinks[2][2], 0);
}

TEST(TopoMatrix, PcieOnly) {
  const NodeDescription node = read(matrix(4, "PHB", 1).text());
  EXPECT_EQ(node.interconnect, Interconnect::kPcie);
  EXPECT_EQ(node.nvlinks_per_gpu(), 0);
  EXPECT_EQ(node.nics_in_use(), 1);
}

TEST(TopoMatrix, PairsWithBridges) {
  MatrixText pairs = matrix(4, "SYS", 2);
  pairs.cells[0][1] = pairs.cells[1][0] = pairs.cells[2][3] = pairs.cells[3][2] = "NV12";
  EXPECT_EQ(read(pairs.text()).interconnect, Interconnect::kPartial);
}

// Of NICs that are equally near each GPU takes one that fewer others took.
TEST(TopoMatrix, NicsAreShared) {
  MatrixText text = matrix(4, "NV12", 2);
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    for (std::size_t nic = 4; nic < 6; ++nic) {
      text.cells[gpu][nic] = text.cells[nic][gpu] = "PXB";
    }
  }
  const NodeDescription node = read(text.text());
  EXPECT_EQ(node.gpus[0].nic, 0);
  EXPECT_EQ(node.gpus[1].nic, 1);
  EXPECT_EQ(node.gpus[2].nic, 0);
  EXPECT_EQ(node.gpus[3].nic, 1);
}

TEST(TopoMatrix, FormsOfOneMatrixReadAlike) {
  const MatrixText plain = matrix(8, "NV18", 8);
  const NodeDescription expected = read(plain.text());
  MatrixText form = plain;
  form.separator = "     ";
  EXPECT_EQ(read(form.text()), expected) << "spaces";
  form.underlined = true;
  EXPECT_EQ(read(form.text()), expected) << "terminal codes";
  EXPECT_EQ(read("$ nvidia-smi topo -m\n" + plain.text()), expected) << "a prompt before it";
  std::string ends;
  for (const char c : plain.text()) {
    ends += c == '\n' ? std::string("\x0d\n") : std::string(1, c);
  }
  EXPECT_EQ(read(ends), expected) << "CRLF";
  form = plain;
  form.cpus.clear();
  EXPECT_EQ(read(form.text()).domains, 0) << "drivers without affinities";
  EXPECT_EQ(read(form.text()).gpus[5].nic, expected.gpus[5].nic);
}

TEST(TopoMatrix, Faults) {
  MatrixText text = matrix(4, "NV4", 2);
  text.cells[1][2] = "NV3";
  EXPECT_NE(faults_of(text.text()).find("not what line"), std::string::npos);
  text = matrix(4, "NV4", 2);
  text.cells[1][2] = text.cells[2][1] = "NVX";
  EXPECT_NE(faults_of(text.text()).find("line 3: \"NVX\" from \"GPU1\" to \"GPU2\""),
            std::string::npos);
  text.cells[1][2] = text.cells[2][1] = "X";
  EXPECT_NE(faults_of(text.text()).find("is X"), std::string::npos);
  text.cells[1][2] = text.cells[2][1] = "NV99999999999";
  EXPECT_NE(faults_of(text.text()).find("a cell is X"), std::string::npos);
  text = matrix(4, "NV4", 2);
  text.cells[1][4] = text.cells[4][1] = "NV4";
  EXPECT_NE(faults_of(text.text()).find("NVLinks join GPUs"), std::string::npos);
  text = matrix(4, "NV4", 2);
  text.columns[1] = "GPU0";
  EXPECT_NE(faults_of(text.text()).find("stands twice"), std::string::npos);
  EXPECT_NE(faults_of("").find("no row of columns"), std::string::npos);
}

TEST(TopoMatrix, TruncatedAnywhere) {
  const std::string text = matrix(4, "NV4", 2).text();
  const std::size_t whole = text.find("\n\nLegend");
  const std::size_t last_cell = text.rfind('X', whole);
  for (std::size_t size = 0; size < last_cell; ++size) {
    EXPECT_FALSE(parse_topo_matrix(text.substr(0, size)).has_value()) << size;
  }
  EXPECT_TRUE(parse_topo_matrix(text.substr(0, whole)).has_value());
}

TEST(TopoMatrix, HostileTexts) {
  const std::string line(std::size_t{4} << 20, 'x');
  std::string columns;
  for (int gpu = 0; gpu < 20'000; ++gpu) {
    columns += " GPU" + std::to_string(gpu);
  }
  for (const std::string& text : {line,
                                  std::string(1000, '\0'),
                                  "\x1b[" + line,
                                  columns,
                                  "GPU0 GPU1\n" + line,
                                  std::string(5000, '\x1b')}) {
    EXPECT_FALSE(parse_topo_matrix(text).has_value());
  }
}

}  // namespace
}  // namespace foretrain
