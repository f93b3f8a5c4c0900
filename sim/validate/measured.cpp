#include "sim/validate/measured.h"

namespace foretrain {
namespace {

/// B s l h^2 of a GPT's step times what the publications put around it.
double gpt_flops(const PublishedRow& row, double per_layer, double head_share) {
  const auto real = [](const std::optional<std::int64_t>& value) {
    return static_cast<double>(value.value_or(0));
  };
  const double h = real(row.hidden);
  const double l = real(row.layers);
  return per_layer * real(row.gbs) * real(row.seq) * l * h * h *
         (1 + real(row.seq) / (6 * h) + real(row.vocab) / (head_share * l * h));
}

/// Narayanan et al. 2021: forward, recomputation and backward.
double flops_with_recompute(const PublishedRow& row) {
  return gpt_flops(row, 96, 16);
}
/// Korthikanti et al. 2022: forward and backward.
double flops_without_recompute(const PublishedRow& row) {
  return gpt_flops(row, 72, 12);
}

enum class Quantity { kTokens, kSequences, kFlopsWithRecompute, kModelFlops, kUtilisation };

struct Metric {
  std::string_view name;
  Quantity quantity;
  bool per_gpu = true;
};
constexpr Metric kMetrics[] = {
    {"tokens_per_s_per_gpu", Quantity::kTokens},
    {"tokens_per_s", Quantity::kTokens, false},
    {"samples_per_s_per_gpu", Quantity::kSequences},
    {"samples_per_s", Quantity::kSequences, false},
    {"achieved_tflops_per_gpu_incl_recompute", Quantity::kFlopsWithRecompute},
    {"hardware_tflops_per_gpu", Quantity::kFlopsWithRecompute},
    {"model_tflops_per_gpu", Quantity::kModelFlops},
    {"mfu", Quantity::kUtilisation},
};

const Metric* metric_of(const std::string& name) {
  for (const Metric& metric : kMetrics) {
    if (metric.name == name) {
      return &metric;
    }
  }
  return nullptr;
}

bool is_gpt(const PublishedRow& row) {
  const ModelSpelling* const model = model_spelling_of(row);
  return model != nullptr && model->family == "gpt2" && row.layers && row.hidden && row.vocab;
}

/// Work of a step in the unit of the rate; 0: not known.
double work_of(const PublishedRow& row, Quantity quantity, const PublishedSource& source) {
  const double sequences = static_cast<double>(*row.gbs);
  switch (quantity) {
    case Quantity::kTokens:
      return sequences * static_cast<double>(*row.seq);
    case Quantity::kSequences:
      return sequences;
    case Quantity::kFlopsWithRecompute:
      return is_gpt(row) && row.recompute == "full" ? flops_with_recompute(row) / 1e12 : 0;
    case Quantity::kModelFlops:
    case Quantity::kUtilisation:
      return is_gpt(row) && source.no_recompute_in_flops ? flops_without_recompute(row) / 1e12 : 0;
  }
  return 0;
}

/// BigScience's first formula was replaced in February 2022; rows that print both a step and its
/// rate give the ratio to the one above.
double formula_correction(const PublishedRow& row) {
  const bool older = row.notes.find("older formula") != std::string::npos;
  return older ? 1.037 : 1.0;
}

}  // namespace

MeasuredStep measured_step(const PublishedRow& row,
                           const PublishedSource& source,
                           const PublishedHardware* hardware) {
  if (row.step_time_s) {
    return {row.step_time_s, ""};
  }
  if (!row.measured_value) {
    return {std::nullopt, "nothing is published"};
  }
  const Metric* const metric = metric_of(row.measured_metric);
  if (metric == nullptr) {
    return {std::nullopt, row.measured_metric + " is no time of a step"};
  }
  if (!row.gbs || !row.seq || !row.gpus) {
    return {std::nullopt, row.measured_metric + ", but not of how large a step"};
  }
  const double work = work_of(row, metric->quantity, source);
  if (work <= 0) {
    return {std::nullopt, row.measured_metric + ", but not which FLOPs it counts"};
  }
  double rate = *row.measured_value * (metric->per_gpu ? static_cast<double>(*row.gpus) : 1);
  if (metric->quantity == Quantity::kUtilisation) {
    if (hardware == nullptr || hardware->peak_tflops <= 0) {
      return {std::nullopt, "a utilisation of a peak that is not known"};
    }
    rate *= hardware->peak_tflops * (row.unit == "%" ? 0.01 : 1);
  }
  if (metric->quantity == Quantity::kFlopsWithRecompute) {
    rate *= formula_correction(row);
  }
  return {work / rate, ""};
}

}  // namespace foretrain
