#include "tests/support/fabric_text.h"

#include "foretrain/discover.h"

#include <string>

#include <gtest/gtest.h>

/// Rule: a text that is no whole fabric is refused with the lines at fault, whatever it holds.
namespace foretrain {
namespace {

using test::FabricText;
using test::RailFabric;

std::string small() {
  return RailFabric{.groups = 2, .hosts = 2, .rails = 2, .spines = 2}.build().text();
}

/// The faults as one text.
std::string faults_of(const std::string& text) {
  const Expected<FabricDiscovery> read = parse_ibnetdiscover(text);
  std::string all;
  for (const Diagnostic& fault : read ? std::vector<Diagnostic>{} : read.error().list) {
    all += fault.message + "; " + fault.hint + "\n";
  }
  return all;
}

/// `small()` with one place changed.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = small();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::int64_t line_of(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

TEST(FabricFaults, TheWholeTextHasNone) {
  EXPECT_EQ(faults_of(small()), "");
}

TEST(FabricFaults, SpeedsThatAreNone) {
  for (const char* rate : {"4xWDR", "3xNDR", "4x", "4xndr", "99999999999xSDR", "4xSDRx"}) {
    const std::string text = changed("4xNDR", rate);
    const std::string faults = faults_of(text);
    EXPECT_EQ(faults.find("line " + std::to_string(line_of(text, rate)) + ": \"" + rate), 0U)
        << faults;
  }
  EXPECT_NE(faults_of(changed(" 4xNDR", "")).find("width and speed are missing"),
            std::string::npos);
}

TEST(FabricFaults, EndsThatDisagree) {
  EXPECT_NE(faults_of(changed("4xNDR", "4xHDR")).find("not as fast as its other end says"),
            std::string::npos);
  const std::string elsewhere = faults_of(changed("\"S-1002\"[1]", "\"S-1003\"[1]"));
  EXPECT_NE(elsewhere.find("which by line"), std::string::npos) << elsewhere;
  const std::string nothing = faults_of(changed("\"S-1002\"[1]", "\"S-1002\"[60]"));
  EXPECT_NE(nothing.find("port 60, which lists nothing"), std::string::npos) << nothing;
  const std::string nobody = faults_of(changed("\"S-1002\"[1]", "\"S-9999\"[1]"));
  EXPECT_NE(nobody.find("\"S-9999\", the peer of \"S-1000\" port 1, is not listed"),
            std::string::npos)
      << nobody;
}

TEST(FabricFaults, ThingsThatStandTwice) {
  const std::string twice = faults_of(small() + small());
  EXPECT_NE(twice.find("is listed a second time, first in line"), std::string::npos) << twice;
  const std::string port = faults_of(changed("[2]", "[1]"));
  EXPECT_NE(port.find("port 1 of \"S-1000\" is listed a second time"), std::string::npos) << port;
}

TEST(FabricFaults, PortsBeyondTheNode) {
  EXPECT_NE(faults_of(changed("Switch\x09"
                              "65",
                              "Switch\x09"
                              "2"))
                .find("which has 2"),
            std::string::npos);
  EXPECT_NE(faults_of(changed("Switch\x09"
                              "65",
                              "Switch\x09"
                              "255"))
                .find("does not name a node"),
            std::string::npos);
  EXPECT_NE(faults_of(changed("[2]", "[0]")).find("does not name a port"), std::string::npos);
  EXPECT_NE(faults_of("[1] \"S-1\"[2] # \"a\" lid 1 4xNDR\n").find("a port of no node"),
            std::string::npos);
}

TEST(FabricFaults, CablesWithoutASwitch) {
  FabricText text;
  const int one = text.add("Ca", "a mlx5_0");
  text.connect(one, text.add("Ca", "b mlx5_0"));
  EXPECT_NE(faults_of(text.text()).find("without a switch"), std::string::npos);
}

TEST(FabricFaults, EveryFaultAtOnceButNotThousands) {
  std::string text = small();
  std::size_t bad = 0;
  for (std::size_t at = 0; (at = text.find("4xNDR", at)) != std::string::npos; ++bad) {
    text.replace(at, 5, "5xNDR");
  }
  const Expected<FabricDiscovery> read = parse_ibnetdiscover(text);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().list.size(), bad);
  std::string many;
  for (int line = 0; line < 5000; ++line) {
    many += "nothing of the kind\n";
  }
  const Expected<FabricDiscovery> refused = parse_ibnetdiscover(many);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().list.back().message, "and 4960 more faults");
}

// Cut anywhere, a cable or a block misses its other end.
TEST(FabricFaults, TruncatedAnywhere) {
  const std::string text = small();
  const std::size_t last = text.rfind("4xNDR");
  for (std::size_t size = 0; size < last + 4; ++size) {
    EXPECT_FALSE(parse_ibnetdiscover(text.substr(0, size)).has_value()) << size;
  }
  EXPECT_TRUE(parse_ibnetdiscover(text.substr(0, last + 5)).has_value());
}

TEST(FabricFaults, LineEndsOfOtherSystems) {
  std::string text;
  for (const char c : small()) {
    text += c == '\n' ? std::string("\x0d\n") : std::string(1, c);
  }
  const Expected<FabricDiscovery> read = parse_ibnetdiscover(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->fabric.hosts.size(), 4U);
}

TEST(FabricFaults, HostileTexts) {
  const std::string zeros(1000, '\0');
  const std::string line(std::size_t{8} << 20, 'x');
  for (const std::string& text : {std::string(),
                                  zeros,
                                  line,
                                  "Switch " + line,
                                  "Ca\x09"
                                  "1 \"" +
                                      line + "\" # \"" + line,
                                  "Switch 4 \"S\" # \"" + line + "\"\n[" + line,
                                  "[" + std::string(line.size(), '[')}) {
    const Expected<FabricDiscovery> read = parse_ibnetdiscover(text);
    ASSERT_FALSE(read.has_value());
    for (const Diagnostic& fault : read.error().list) {
      EXPECT_LT(fault.message.size(), 400U);
    }
  }
}

// What a name holds cannot reach a terminal or break the quotes of Graphviz.
TEST(FabricFaults, NamesAreCleaned) {
  FabricText text;
  text.hang("node1\x1b[31m mlx5_0", text.add("Switch", "le\"af\\\x07"));
  const Expected<FabricDiscovery> read = parse_ibnetdiscover(text.text());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->fabric.hosts[0].name, "node1?[31m");
  EXPECT_EQ(read->fabric.switches[0], "le?af??");
}

}  // namespace
}  // namespace foretrain
