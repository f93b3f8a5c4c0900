#include "tests/support/node_text.h"

#include "foretrain/node_description.h"

#include <string>

#include <gtest/gtest.h>

/// Rule: NCCL's topology file is read for what it tells, tree and links; what is no such file, or
/// more than one, is refused by line and never expanded.
namespace foretrain {
namespace {

using Interconnect = NodeDescription::Interconnect;
using test::NcclText;

NodeDescription read(const std::string& text) {
  EXPECT_TRUE(is_nccl_topology(text));
  const Expected<NodeDescription> read = parse_nccl_topology(text);
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().list.front().message);
  return read.value_or(NodeDescription());
}

std::string faults_of(const std::string& text) {
  const Expected<NodeDescription> read = parse_nccl_topology(text);
  std::string all;
  for (const Diagnostic& fault : read ? std::vector<Diagnostic>{} : read.error().list) {
    all += fault.message + "; " + fault.hint + "\n";
  }
  return all;
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = NcclText().text();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(NcclTopology, EightH100) {
  const NodeDescription node = read(NcclText().text());
  ASSERT_EQ(node.gpus.size(), 8U);
  EXPECT_EQ(node.interconnect, Interconnect::kNvSwitch);
  EXPECT_EQ(node.nvlinks_per_gpu(), 18) << "6 to each of 3 switches";
  EXPECT_EQ(node.gpus[0].sm, 90);
  EXPECT_EQ(node.gpus[0].bus, "0000:10:00.0");
  EXPECT_EQ(node.gpus[0].pcie.bytes_per_second, 64'000'000'000) << "16 lanes of 32 GT/s";
  EXPECT_EQ(node.domains, 2);
  EXPECT_EQ(node.gpus[3].domain, 0);
  EXPECT_EQ(node.gpus[4].domain, 1);
  EXPECT_EQ(node.nics_in_use(), 8);
  EXPECT_EQ(node.nic_rate().bytes_per_second, 50'000'000'000);
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(node.gpus[gpu].nic, static_cast<std::int32_t>(gpu));
    EXPECT_EQ(node.gpus[gpu].nic_path, PciePath::kPix);
  }
}

// The rates of NVIDIA's data sheets, one direction: V100 150, A100 300, H100 450, B200 900 GB/s.
TEST(NcclTopology, RatesOfALink) {
  EXPECT_EQ(nvlink_rate(70).bytes_per_second * 6, 150'000'000'000);
  EXPECT_EQ(nvlink_rate(80).bytes_per_second * 12, 300'000'000'000);
  EXPECT_EQ(nvlink_rate(90).bytes_per_second * 18, 450'000'000'000);
  EXPECT_EQ(nvlink_rate(100).bytes_per_second * 18, 900'000'000'000);
  EXPECT_EQ(nvlink_rate(0).bytes_per_second, 0);
  EXPECT_EQ(nvlink_rate(120).bytes_per_second, 0);
}

TEST(NcclTopology, LinksFromGpuToGpu) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int gpu = 0; gpu < 4; ++gpu) {
    text +=
        "<pci busid=\"" + NcclText::bus(gpu) + "\" class=\"0x030200\"><gpu dev=\"0\" sm=\"80\">";
    for (int to = 0; to < 4; ++to) {
      text += to == gpu ? ""
                        : "<nvlink target=\"" + NcclText::bus(to) +
                              "\" count=\"4\" tclass=\"0x030200\"/>";
    }
    text += "</gpu></pci>";
  }
  const NodeDescription node = read(text + "</cpu></system>");
  EXPECT_EQ(node.interconnect, Interconnect::kMesh);
  EXPECT_EQ(node.nvlinks_per_gpu(), 12);
  EXPECT_EQ(node.nvlinks[0][3], 4);
  EXPECT_EQ(node.gpus[0].nic, -1);
  EXPECT_EQ(node.nics_in_use(), 0);
}

// A file for machines of one type lists slots, without <gpu> and <net>; NICs that two GPUs share.
TEST(NcclTopology, StaticFile) {
  std::string text = "<!-- written by hand -->\n<system version=\"1\">\n";
  for (int cpu = 0; cpu < 2; ++cpu) {
    const std::string number = std::to_string(cpu);
    text += "<cpu numaid=\"" + number + "\"><pci busid=\"ffff:ff:0" + number +
            ".0\" class=\"0x060400\">";
    for (int gpu = 0; gpu < 2; ++gpu) {
      text += "<pci busid=\"" + NcclText::bus(cpu * 2 + gpu) +
              "\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\"/>";
    }
    text += "<pci busid=\"" + NcclText::bus(20 + cpu) + "\" class=\"0x020000\"/></pci></cpu>";
  }
  const NodeDescription node = read(text + "</system>");
  EXPECT_EQ(node.interconnect, Interconnect::kNotTold);
  EXPECT_EQ(node.gpus.size(), 4U);
  EXPECT_EQ(node.gpus[0].sm, 0);
  EXPECT_EQ(node.gpus[0].pcie.bytes_per_second, 16'000'000'000);
  EXPECT_EQ(node.nics_in_use(), 2);
  EXPECT_EQ(node.gpus[1].nic, 0);
  EXPECT_EQ(node.gpus[2].nic, 1);
  EXPECT_EQ(node.nic_rate().bytes_per_second, 0);
}

// Below one bridge, below several, below one CPU, below another.
TEST(NcclTopology, WaysToANic) {
  const std::string gpu = "<pci busid=\"g\" class=\"0x030200\"><gpu sm=\"90\"/></pci>";
  const std::string nic = "<pci busid=\"n\" class=\"0x020700\"><nic><net name=\"n\"/></nic></pci>";
  const auto bridge = [](const std::string& inside) {
    return "<pci class=\"0x060400\">" + inside + "</pci>";
  };
  const auto cpu = [](const std::string& inside) { return "<cpu>" + inside + "</cpu>"; };
  const auto way = [](const std::string& inside) {
    return read("<system>" + inside + "</system>").gpus.at(0).nic_path;
  };
  EXPECT_EQ(way(cpu(bridge(gpu + nic))), PciePath::kPix);
  EXPECT_EQ(way(cpu(bridge(bridge(gpu) + bridge(nic)))), PciePath::kPxb);
  EXPECT_EQ(way(cpu(bridge(gpu) + bridge(nic))), PciePath::kPhb);
  EXPECT_EQ(way(cpu(bridge(gpu)) + cpu(bridge(nic))), PciePath::kSys);
}

TEST(NcclTopology, Faults) {
  EXPECT_NE(faults_of(changed("count=\"6\"", "count=\"0\"")).find("is no number of NVLinks"),
            std::string::npos);
  EXPECT_NE(faults_of(changed("sm=\"90\"", "sm=\"x\"")).find("is no compute capability"),
            std::string::npos);
  EXPECT_NE(faults_of(changed("speed=\"400000\"", "speed=\"fast\"")).find("Mbit/s"),
            std::string::npos);
  EXPECT_NE(faults_of(changed(NcclText::bus(1), NcclText::bus(0))).find("a second GPU on the bus"),
            std::string::npos);
  EXPECT_NE(faults_of("<system/>").find("no GPU"), std::string::npos);
  EXPECT_NE(faults_of("<html><system/></html>").find("outermost"), std::string::npos);
}

TEST(NcclTopology, TruncatedAnywhere) {
  const std::string text = NcclText{.gpus = 2}.text();
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse_nccl_topology(text.substr(0, size)).has_value()) << size;
  }
}

TEST(NcclTopology, HostileTexts) {
  std::string deep = "<system>";
  std::string wide = "<system>";
  for (int level = 0; level < 100'000; ++level) {
    deep += "<pci>";
    wide += "<pci/>";
  }
  EXPECT_NE(faults_of(deep).find("64 levels"), std::string::npos);
  EXPECT_NE(faults_of(wide + "</system>").find("100,000 elements"), std::string::npos);
  const std::string entities =
      "<!DOCTYPE system [<!ENTITY a \"xxxxxxxxxx\"><!ENTITY b \"&a;&a;&a;&a;\">"
      "<!ENTITY f SYSTEM \"file:///etc/hostname\">]><system>&b;&f;</system>";
  EXPECT_NE(faults_of(entities).find("line 1: declares a document type"), std::string::npos);
  const std::string line(std::size_t{4} << 20, 'x');
  for (const std::string& text : {line,
                                  "<system " + line,
                                  "<system a=\"" + line,
                                  std::string(1000, '\0'),
                                  std::string("<system>\xff\xfe</system>")}) {
    EXPECT_NE(faults_of(text).find("not XML"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretrain
