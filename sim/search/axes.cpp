// What an axis may hold: each value legal by itself, none twice, not too many in all.
#include "foretrain/mesh.h"
#include "foretrain/schedule.h"
#include "sim/base/edit_distance.h"
#include "sim/base/format.h"
#include "sim/search/combinations.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::int64_t kMostCombinations = 1 << 22;

template <typename Value>
void check_list(const std::vector<Value>& axis,
                const std::string& name,
                std::vector<Diagnostic>& faults) {
  if (axis.empty()) {
    faults.push_back({"/axes/" + name, "no value to try", "leave the axis out"});
  }
  for (std::size_t at = 1; at < axis.size(); ++at) {
    if (std::find(axis.begin(), axis.begin() + static_cast<std::ptrdiff_t>(at), axis[at]) !=
        axis.begin() + static_cast<std::ptrdiff_t>(at)) {
      faults.push_back({"/axes/" + name, "value " + std::to_string(at + 1) + " repeats", ""});
    }
  }
}

void check_range(const std::vector<std::int64_t>& axis,
                 const std::string& name,
                 std::int64_t least,
                 std::int64_t most,
                 std::vector<Diagnostic>& faults) {
  for (const std::int64_t value : axis) {
    if (value < least || value > most) {
      faults.push_back(
          {"/axes/" + name,
           std::to_string(value) + " is out of range",
           std::to_string(std::max<std::int64_t>(least, 0)) + " to " + std::to_string(most)});
    }
  }
  check_list(axis, name, faults);
}

void check_schedules(const std::vector<std::string>& axis, std::vector<Diagnostic>& faults) {
  const std::span<const std::string_view> names = schedule_names();
  for (const std::string& name : axis) {
    if (find_schedule(name) != nullptr) {
      continue;
    }
    std::string hint = did_you_mean(name, std::vector<std::string>(names.begin(), names.end()));
    if (hint.empty()) {
      for (const std::string_view known : names) {
        hint += (hint.empty() ? "names: " : ", ") + std::string(known);
      }
    }
    faults.push_back({"/axes/schedules", "unknown schedule \"" + name + "\"", hint});
  }
  check_list(axis, "schedules", faults);
}

/// Every dimension once: any of them may be above 1 somewhere in the search.
void check_orders(const ModelConfig& model,
                  const std::vector<std::string>& axis,
                  std::vector<Diagnostic>& faults) {
  std::vector<std::string> needed = {"tp", "cp", "dp", "pp"};
  if (model.experts > 0) {
    needed.emplace_back("ep");
  }
  for (const std::string& order : axis) {
    MeshSize size;
    size.order = order;
    if (const Expected<DeviceMesh> mesh = DeviceMesh::build(size); !mesh) {
      for (const Diagnostic& fault : mesh.error().list) {
        faults.push_back({"/axes/orders", fault.message, fault.hint});
      }
    }
    for (const std::string& name : needed) {
      if (("-" + order + "-").find("-" + name + "-") == std::string::npos) {
        faults.push_back({"/axes/orders",
                          name + " is missing from order \"" + order + "\"",
                          "name each dimension once"});
      }
    }
  }
  check_list(axis, "orders", faults);
}

}  // namespace

std::vector<Diagnostic> axes_faults(const ModelConfig& model, const SearchAxes& axes) {
  constexpr std::int64_t kMostCount = 65'536;
  std::vector<Diagnostic> faults;
  check_range(axes.micro_batch_sizes, "micro_batch_sizes", 1, kMostCount, faults);
  check_range(axes.vpp, "vpp", 1, kMostCount, faults);
  check_range(axes.recompute_layers, "recompute", kRecomputeAll, kMostCount, faults);
  check_list(axes.shardings, "sharding", faults);
  check_schedules(axes.schedules, faults);
  check_orders(model, axes.orders, faults);
  if (faults.empty()) {
    const std::int64_t count = Combinations(model, axes).count();
    if (count > kMostCombinations) {
      faults.push_back(
          {"/axes",
           with_commas(count) + " combinations are more than " + with_commas(kMostCombinations),
           "give the axes fewer values"});
    }
  }
  return faults;
}

}  // namespace foretrain
