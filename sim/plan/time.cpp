// How long a training takes, and how many GPUs a deadline takes. Failures are not counted here.
#include "foretrain/model.h"
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <charconv>
#include <utility>

namespace foretrain {
namespace {

constexpr double kDay = 86400;

/// Whose MFU days are reckoned with; nothing where there is none.
bool set_rate(const Board& board, TrainingTime& time) {
  const PlanOptions& options = board.options;
  const double peak = board.given.peak;
  if (options.tokens_per_s_per_gpu) {
    time.basis = "tokens/s per GPU as given";
    time.mfu = *options.tokens_per_s_per_gpu * time.flops_per_token / peak;
  } else if (options.mfu) {
    time.basis = "MFU as given";
    time.mfu = *options.mfu;
  } else if (board.plan.simulated && !board.plan.simulated->deadlock) {
    time.basis = "this plan's MFU, simulated";
    time.mfu = board.plan.simulated->mfu;
  } else if (board.plan.feasible) {
    time.basis = "this plan's MFU, closed form";
    time.mfu = board.plan.estimate.mfu;
  } else {
    return false;
  }
  time.tokens_per_s_per_gpu =
      options.tokens_per_s_per_gpu.value_or(time.mfu * peak / time.flops_per_token);
  return time.mfu > 0;
}

/// 6 (N - input embedding) + attention, of the parameters a token meets.
std::string per_token_text(const Board& board, double flops) {
  const ParameterCount count = count_parameters(board.job.model);
  const double matrices = 6.0 * static_cast<double>(count.active - count.input_embedding);
  return "FLOPs a token, 6 N and attention: " +
         equation("6 x (" + operand(static_cast<double>(count.active)) + " - " +
                      operand(static_cast<double>(count.input_embedding)) + ") + " +
                      operand(flops - matrices),
                  flops);
}

void add_work(const Board& board, const TrainingTime& time, PlanStep& step) {
  if (board.options.flops) {
    step.arithmetic.push_back("the whole training: " + figure(time.flops) + " FLOPs");
    return;
  }
  step.arithmetic.push_back(per_token_text(board, time.flops_per_token));
  step.arithmetic.push_back(
      "6 N D and attention: " +
      equation(operand(time.flops_per_token) + " x " + operand(time.tokens), time.flops) +
      " FLOPs");
}

/// The arithmetic, and as the decision what its line comes to.
void add_days(const Board& board, const TrainingTime& time, PlanStep& step) {
  const std::string gpus = std::to_string(board.job.gpus);
  const std::string on = " days on " + count_text(board.job.gpus, "GPU");
  const auto add = [&](const std::string& expression) {
    step.arithmetic.push_back(equation(expression, time.days) + on);
    step.decision = figure(outcome(expression, time.days)) + on;
  };
  if (board.options.tokens_per_s_per_gpu) {
    const std::string rate = operand(time.tokens_per_s_per_gpu);
    add(operand(time.tokens) + " / (" + gpus + " x " + rate + " x 86400)");
    step.arithmetic.push_back("that rate is an MFU of " +
                              percent_equation(rate + " x " + operand(time.flops_per_token) +
                                                   " / " + operand(board.given.peak),
                                               time.mfu));
    return;
  }
  add(operand(time.flops) + " / (" + gpus + " x " + operand(board.given.peak) + " x " +
      operand(time.mfu) + " x 86400)");
}

std::string plain_number(double value) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return std::string(std::begin(text), end);
}

void add_fault(bool wrong,
               std::vector<Diagnostic>& faults,
               std::string pointer,
               std::string message,
               std::string hint) {
  if (wrong) {
    faults.push_back({std::move(pointer), std::move(message), std::move(hint)});
  }
}

}  // namespace

void reckon_time(Board& board) {
  const PlanOptions& options = board.options;
  if (!options.tokens && !options.flops) {
    return;
  }
  TrainingTime time;
  time.flops_per_token =
      flops_per_token(board.job.model, board.job.sequence_length, FlopsConvention::kCausal);
  time.tokens = options.tokens ? *options.tokens : *options.flops / time.flops_per_token;
  time.flops = options.flops ? *options.flops : *options.tokens * time.flops_per_token;
  PlanStep step;
  step.title = "Days";
  step.question = options.days ? "How long does the training take, and what keeps the deadline?"
                               : "How long does the training take?";
  add_work(board, time, step);
  if (set_rate(board, time)) {
    const double seconds = time.flops / (board.given.peak * time.mfu);
    time.days = seconds / static_cast<double>(board.job.gpus) / kDay;
    step.arithmetic.push_back("reckoned with " + time.basis + ": " + percent(time.mfu) +
                              " of the dense peak, " + figure(board.given.peak) + " FLOP/s");
    add_days(board, time, step);
    if (options.days) {
      time.gpus_needed = seconds / (*options.days * kDay);
      add_deadline(board, time, step);
    }
    board.plan.time = time;
  } else {
    step.decision = "no days: nothing fits here, and no MFU was given (--mfu)";
  }
  step.otherwise =
      "failures and checkpoints (goodput) come on top; so do a smaller batch at the "
      "start and restarts";
  board.plan.steps.push_back(std::move(step));
}

std::vector<Diagnostic> plan_faults(const PlanOptions& options) {
  const bool work = options.tokens || options.flops;
  std::vector<Diagnostic> faults;
  const auto add = [&faults](
                       bool wrong, std::string pointer, std::string message, std::string hint) {
    add_fault(wrong, faults, std::move(pointer), std::move(message), std::move(hint));
  };
  const auto range = [&add](const std::optional<double>& value,
                            const std::string& pointer,
                            double least,
                            double most,
                            const std::string& example) {
    add(value && !(*value >= least && *value <= most),
        pointer,
        "must be from " + plain_number(least) + " to " + plain_number(most),
        "e.g. " + example);
  };
  range(options.tokens, "/tokens", 1, 1e24, "15T");
  range(options.flops, "/flops", 1, 1e36, "3e24");
  range(options.days, "/days", 1e-3, 1e6, "90");
  range(options.mfu, "/mfu", 1e-6, 1, "0.4 for 40 %");
  range(options.tokens_per_s_per_gpu, "/tokens-per-s-per-gpu", 1e-6, 1e12, "1444");
  add(options.tokens && options.flops,
      "/flops",
      "--flops and --tokens both say how much is trained",
      "give one of them");
  add(options.mfu && options.tokens_per_s_per_gpu,
      "/mfu",
      "--mfu and --tokens-per-s-per-gpu both say how fast it goes",
      "give one of them");
  add(options.tokens_per_s_per_gpu && options.flops && !options.tokens,
      "/tokens-per-s-per-gpu",
      "a rate of tokens says nothing of --flops",
      "give --tokens, or --mfu");
  add(options.days && !work,
      "/days",
      "--days has no effect without --tokens or --flops",
      "say how much is to be trained");
  add(options.mfu && !work,
      "/mfu",
      "--mfu has no effect without --tokens or --flops",
      "efficiency of the closed form: --assume efficiency=0.55");
  add(options.tokens_per_s_per_gpu && !work,
      "/tokens-per-s-per-gpu",
      "--tokens-per-s-per-gpu has no effect without --tokens",
      "say how much is to be trained");
  return faults;
}

}  // namespace foretrain
