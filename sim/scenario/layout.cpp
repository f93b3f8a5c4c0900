#include "sim/scenario/layout.h"

#include <algorithm>
#include <optional>
#include <string>

namespace foretrain {
namespace {

constexpr std::size_t kMostTokens = 1'000'000;
constexpr int kDeepestGroup = 16;

/// Expands brackets and repetitions to a flat list of tokens, by recursive descent.
class Expander {
 public:
  explicit Expander(std::string_view text) : text_(text) {}

  /// The tokens, or nothing with fault() set.
  std::optional<std::string> run() {
    std::string tokens = sequence(0);
    if (fault_.empty() && at_ < text_.size()) {
      fail("nothing opened this bracket");
    }
    return fault_.empty() ? std::optional(tokens) : std::nullopt;
  }
  const std::string& fault() const { return fault_; }

 private:
  std::string sequence(int depth) {
    std::string tokens;
    while (fault_.empty() && at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == ',' || c == ' ') {
        ++at_;
        continue;
      }
      repeat(item(depth), tokens);
    }
    return tokens;
  }

  std::string item(int depth) {
    const char c = text_[at_];
    if (c == '(') {
      if (depth == kDeepestGroup) {
        return fail("brackets nested too deeply");
      }
      ++at_;
      std::string inside = sequence(depth + 1);
      if (at_ == text_.size()) {
        return fail("a bracket is not closed");
      }
      ++at_;
      return inside;
    }
    if (std::string_view("EtmL|").find(c) == std::string_view::npos) {
      return fail("'" + std::string(1, c) + "' is no token of a layout");
    }
    ++at_;
    return std::string(1, c);
  }

  void repeat(const std::string& piece, std::string& tokens) {
    std::size_t times = 1;
    if (fault_.empty() && at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      times = 0;
      const std::size_t first = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        times = std::min(times * 10 + static_cast<std::size_t>(text_[at_] - '0'), kMostTokens);
      }
      if (at_ == first || times == 0) {
        fail("'*' needs a count of at least 1");
        return;
      }
    }
    if (!fault_.empty()) {
      return;
    }
    if (tokens.size() + piece.size() * times > kMostTokens) {
      fail("stands for more than " + std::to_string(kMostTokens) + " tokens");
      return;
    }
    for (std::size_t time = 0; time < times; ++time) {
      tokens += piece;
    }
  }

  std::string fail(const std::string& why) {
    if (fault_.empty()) {
      fault_ = why + " (character " + std::to_string(at_ + 1) + ")";
    }
    return "";
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string fault_;
};

/// Puts one token onto the last stage; says why it cannot stand there.
std::string_view place(char token, std::vector<LayoutStage>& stages) {
  LayoutStage& stage = stages.back();
  if (stage.loss && token != '|') {
    return "the loss must be last in its stage";
  }
  switch (token) {
    case '|':
      stages.emplace_back();
      return "";
    case 'E':
      if (stage.layers > 0 || stage.mtp > 0 || stage.embedding || stages.size() > 1) {
        return "the embedding must come first, once";
      }
      stage.embedding = true;
      return "";
    case 'L':
      stage.loss = true;
      return "";
    case 't':
      ++stage.layers;
      return stage.mtp > 0 ? "a layer may not follow a prediction module" : "";
    default:
      ++stage.mtp;
      return "";
  }
}

}  // namespace

Expected<std::vector<LayoutStage>> parse_layout(std::string_view text) {
  const auto fault = [](std::string why) {
    return refuse(Diagnostic{"/parallelism/layout", std::move(why), "e.g. \"Et*3|(tt|)*29,m|L\""});
  };
  Expander expander(text);
  const std::optional<std::string> tokens = expander.run();
  if (!tokens) {
    return fault(expander.fault());
  }
  std::vector<LayoutStage> stages(1);
  for (const char token : *tokens) {
    if (const std::string_view why = place(token, stages); !why.empty()) {
      return fault(std::string(why));
    }
  }
  if (!stages.front().embedding || !stages.back().loss) {
    return fault("must begin with the embedding (E) and end with the loss (L)");
  }
  const auto losses = std::count_if(
      stages.begin(), stages.end(), [](const LayoutStage& stage) { return stage.loss; });
  if (losses != 1) {
    return fault("has " + std::to_string(losses) + " losses (L)");
  }
  return stages;
}

}  // namespace foretrain
