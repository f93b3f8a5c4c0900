#include "tools/collective_output.h"
#include "tools/collective_question.h"
#include "tools/collective_verdict.h"
#include "tools/commands.h"
#include "tools/nccl_tests_log.h"
#include "tools/output.h"

#include "foretrain/quantity.h"
#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

/// What is asked for: exactly one of a size, a sweep, and logs.
std::vector<Diagnostic> word_faults(const CollectiveWords& words) {
  const int asked = (words.bytes.empty() ? 0 : 1) + (words.sweep.empty() ? 0 : 1) +
                    (words.measured.empty() ? 0 : 1);
  std::vector<Diagnostic> faults;
  if (asked != 1) {
    faults.push_back(
        {asked == 0 ? "/bytes" : "/sweep",
         asked == 0 ? "nothing says how many bytes"
                    : "--bytes, --sweep and --measured are three questions",
         asked == 0 ? "give --bytes, --sweep MIN:MAX or --measured FILE" : "ask one at a time"});
  }
  if (words.ranks.empty() && words.gpus == 0 && words.measured.empty()) {
    faults.push_back({"/ranks", "nothing says which ranks", "write for example --ranks 0-15"});
  }
  return faults;
}

Expected<std::vector<Bytes>> sizes_of(const CollectiveWords& words) {
  if (!words.sweep.empty()) {
    return sweep_sizes(words.sweep);
  }
  Expected<Bytes> bytes = parse_size(words.bytes);
  if (!bytes) {
    for (Diagnostic& fault : bytes.error().list) {
      fault.pointer = "/bytes";
    }
    return tl::unexpected<Faults>(bytes.error());
  }
  return std::vector<Bytes>{*bytes};
}

/// Longer than this a cost cannot tell one time from another.
constexpr std::int64_t kMostDays = 26;

std::vector<Diagnostic> uncountable(const CollectiveQuestion& question,
                                    const std::vector<Bytes>& sizes,
                                    const std::string& pointer) {
  for (const Bytes bytes : sizes) {
    const CollectiveCost cost = question.cost(bytes);
    if (std::max(cost.inside, cost.across) > std::chrono::hours(24 * kMostDays)) {
      return {{pointer,
               with_commas(bytes.value) + " bytes would take more than the " +
                   std::to_string(kMostDays) + " days that can be counted",
               "send less"}};
    }
  }
  return {};
}

int refused(const Faults& faults, const CollectiveWords& words) {
  return report_faults(faults, "collective " + words.op, words.json_target);
}

int answer_sizes(const CollectiveWords& words) {
  const std::string ranks = words.ranks.empty() ? first_ranks(words.gpus) : words.ranks;
  const Expected<std::vector<Bytes>> sizes = sizes_of(words);
  const Expected<CollectiveQuestion> question = ask_collective(words, ranks);
  if (!sizes || !question) {
    Faults faults = question ? Faults{} : question.error();
    if (!sizes) {
      faults.list.insert(faults.list.end(), sizes.error().list.begin(), sizes.error().list.end());
    }
    return refused(faults, words);
  }
  const std::string pointer = words.sweep.empty() ? "/bytes" : "/sweep";
  if (auto faults = uncountable(*question, *sizes, pointer); !faults.empty()) {
    return refused(Faults{std::move(faults), FaultKind::kBadInput}, words);
  }
  if (!words.json_target.empty()) {
    return write_json(words.json_target, collective_json(*question, *sizes));
  }
  return write_output("-", collective_page(*question, *sizes));
}

Expected<NcclTestsLog> read_log(const std::string& path, const std::string& op) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    return refuse_file(path, "cannot be read");
  }
  Expected<NcclTestsLog> log = read_nccl_tests(text);
  if (log && !log->op.empty() && collective_kind(log->op) && log->op != op) {
    return refuse({"/op", path + " measured " + log->op + ", not " + op, "name what it measured"});
  }
  return log;
}

/// The ranks given, or the first of as many as the log lists.
Expected<std::string> ranks_of_log(const CollectiveWords& words, const NcclTestsLog& log) {
  if (!words.ranks.empty()) {
    return words.ranks;
  }
  const std::int64_t count = log.ranks > 0 ? log.ranks : words.gpus;
  if (count == 0) {
    return refuse({"/ranks", "the log does not list its ranks", "write for example --ranks 0-15"});
  }
  return first_ranks(count);
}

int answer_logs(const CollectiveWords& words) {
  std::string text;
  Json all = Json::array();
  std::vector<NodesAndShare> points;
  for (const std::string& path : words.measured) {
    const Expected<NcclTestsLog> log = read_log(path, words.op);
    if (!log) {
      return refused(log.error(), words);
    }
    const Expected<std::string> ranks = ranks_of_log(words, *log);
    if (!ranks) {
      return refused(ranks.error(), words);
    }
    const Expected<CollectiveQuestion> question = ask_collective(words, *ranks);
    if (!question) {
      return refused(question.error(), words);
    }
    if (question->shape.size < 2) {
      return refused(
          Faults{{{"/ranks", "one rank alone has nothing to compare", "name two or more"}},
                 FaultKind::kBadInput},
          words);
    }
    const CollectiveVerdict verdict = compare_with_log(*question, *log);
    points.push_back({question->shape.nodes, verdict.sizes.back().share});
    text += verdict_page(*question, verdict);
    all.push_back(verdict_json(*question, verdict));
  }
  const std::string scaling = scaling_finding(std::move(points));
  if (!words.json_target.empty()) {
    Json json = all.size() == 1 ? all.front() : Json{{"op", words.op}, {"logs", all}};
    json["scaling"] = scaling;
    return write_json(words.json_target, json);
  }
  return write_output("-", text + (scaling.empty() ? "" : wrapped("  ", scaling, 2, page_width())));
}

}  // namespace

int cmd_collective(int argc, char** argv) {
  CLI::App app("Time, algorithm and bandwidth of one collective operation, as nccl-tests counts.",
               "collective");
  CollectiveWords words;
  app.add_option(
         "op", words.op, "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv")
      ->required()
      ->type_name("OP")
      ->check(not_empty());
  app.add_option("--topology", words.topology, "a preset's name or a path")
      ->required()
      ->type_name("NAME|FILE")
      ->check(not_empty());
  app.add_option("--gpus", words.gpus, "GPUs of the cluster (default: whole nodes with all ranks)")
      ->check(whole_number(1));
  app.add_option("--ranks", words.ranks, "the group (default: all GPUs, or as many as the log has)")
      ->type_name("LIST")
      ->check(not_empty());
  app.add_option("--bytes", words.bytes, "nccl-tests' size: the whole buffer of a rank")
      ->type_name("SIZE")
      ->check(not_empty());
  app.add_option("--algorithm", words.algorithm, "force one (default: the fastest NCCL considers)")
      ->type_name("NAME")
      ->check(not_empty());
  app.add_option(
         "--beside", words.beside, "a group that does the same at the same time; repeatable")
      ->type_name("LIST")
      ->check(not_empty())
      ->expected(1)
      ->take_all();
  app.add_option("--sweep", words.sweep, "a table of sizes, doubling")
      ->type_name("MIN:MAX")
      ->check(not_empty());
  app.add_option("--measured", words.measured, "a log of nccl-tests to compare with; repeatable")
      ->type_name("FILE")
      ->check(not_empty())
      ->expected(1)
      ->take_all();
  add_failed_options(app, words.failed);
  add_json_option(app, words.json_target);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  std::vector<std::string> inputs = words.measured;
  inputs.push_back(words.topology);
  if (const std::optional<int> over =
          refuse_overwriting("collective", {{"json", words.json_target}}, inputs)) {
    return *over;
  }
  if (std::vector<Diagnostic> faults = word_faults(words); !faults.empty()) {
    return refused(Faults{std::move(faults), FaultKind::kBadInput}, words);
  }
  return words.measured.empty() ? answer_sizes(words) : answer_logs(words);
}

}  // namespace foretrain
