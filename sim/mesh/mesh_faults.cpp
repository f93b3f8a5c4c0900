#include "sim/mesh/mesh_faults.h"

#include "foretrain/units.h"
#include "sim/base/edit_distance.h"

#include <algorithm>
#include <array>

namespace foretrain {
namespace {

struct NamedDegree {
  const char* name;
  std::int64_t degree;
};

std::array<NamedDegree, 5> ordered_degrees(const MeshSize& size) {
  return {{{"tp", size.tp}, {"cp", size.cp}, {"ep", size.ep}, {"dp", size.dp}, {"pp", size.pp}}};
}

void check_degrees(const MeshSize& size, std::vector<Diagnostic>& faults) {
  const auto check = [&](const std::string& name, std::int64_t degree) {
    if (degree < 1) {
      faults.push_back({"/parallelism/" + name,
                        name + " is " + std::to_string(degree) + ", must be at least 1",
                        ""});
    } else if (degree > kMaxRanks) {
      faults.push_back({"/parallelism/" + name,
                        name + " is " + std::to_string(degree) + ", more than the " +
                            std::to_string(kMaxRanks) + " ranks a mesh may have",
                        ""});
    }
  };
  for (const NamedDegree& dimension : ordered_degrees(size)) {
    check(dimension.name, dimension.degree);
  }
  check("etp", size.etp);
  if (size.gpus_per_node < 1) {
    faults.push_back(
        {"/gpus_per_node",
         "gpus_per_node is " + std::to_string(size.gpus_per_node) + ", must be at least 1",
         ""});
  }
}

void check_order(const MeshSize& size, std::vector<Diagnostic>& faults) {
  const std::string pointer = "/parallelism/order";
  const std::vector<std::string> words = split_order(size.order);
  const std::vector<std::string> known = {"tp", "cp", "ep", "dp", "pp"};
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      const std::string near = did_you_mean(word, known);
      faults.push_back({pointer,
                        "unknown dimension \"" + word + "\" in order \"" + size.order + "\"",
                        near.empty() ? "dimensions are tp, cp, ep, dp, pp" : near});
    }
  }
  for (const NamedDegree& dimension : ordered_degrees(size)) {
    const auto times = std::count(words.begin(), words.end(), dimension.name);
    const std::string name = dimension.name;
    if (times > 1) {
      faults.push_back(
          {pointer,
           name + " stands " + std::to_string(times) + " times in order \"" + size.order + "\"",
           "name each dimension once"});
    } else if (times == 0 && dimension.degree > 1) {
      faults.push_back({pointer,
                        name + " = " + std::to_string(dimension.degree) +
                            " is missing from order \"" + size.order + "\"",
                        "only a dimension of degree 1 may be left out"});
    }
  }
}

void check_experts(const MeshSize& size, std::vector<Diagnostic>& faults) {
  const std::int64_t stage = size.tp * size.cp * size.dp;
  const std::string rule = "tp * cp * dp = etp * ep * edp";
  const std::string ranks = "tp * cp * dp = " + std::to_string(stage);
  if (stage % size.etp != 0) {
    faults.push_back({"/parallelism/etp",
                      "etp = " + std::to_string(size.etp) + " does not divide " + ranks,
                      rule});
  } else if (stage % (size.etp * size.ep) != 0) {
    const std::string product = size.etp == 1 ? "ep = " : "etp * ep = ";
    faults.push_back({"/parallelism/ep",
                      product + std::to_string(size.etp * size.ep) + " does not divide " + ranks,
                      rule});
  }
}

}  // namespace

std::vector<std::string> split_order(const std::string& order) {
  std::vector<std::string> words(1);
  for (const char c : order) {
    if (c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return order.empty() ? std::vector<std::string>{} : words;
}

std::vector<Diagnostic> mesh_faults(const MeshSize& size) {
  std::vector<Diagnostic> faults;
  check_degrees(size, faults);
  check_order(size, faults);
  const bool degrees_legal =
      std::none_of(faults.begin(), faults.end(), [](const Diagnostic& fault) {
        return fault.pointer != "/parallelism/order";
      });
  if (!degrees_legal) {
    return faults;
  }
  Int128 world = 1;
  for (const std::int64_t degree : {size.tp, size.cp, size.dp, size.pp}) {
    world = std::min<Int128>(world * degree, Int128{kMaxRanks} + 1);
  }
  if (world > kMaxRanks) {
    faults.push_back({"/parallelism",
                      "tp * cp * dp * pp is more than " + std::to_string(kMaxRanks) + " ranks",
                      ""});
    return faults;
  }
  check_experts(size, faults);
  return faults;
}

}  // namespace foretrain
