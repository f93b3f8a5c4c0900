#include "tests/support/scenarios.h"

#include "sim/cost/operator_cost.h"
#include "sim/model/quantise.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: GEMMs in a narrow type and the casts of their operands take what kernel benchmarks say.
namespace foretrain {
namespace {

Scenario scenario_on(const std::string& topology, const std::string& dtype) {
  test::TinyScenario tiny;
  tiny.topology = topology;
  tiny.costs = "\"calibrated\"";
  std::string text = tiny.json();
  const std::string mark = R"("training": {)";
  text.insert(text.find(mark) + mark.size(), R"("dtype": )" + dtype + ", ");
  const Expected<Scenario> scenario = parse_scenario(text);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().list.front().message;
  return *scenario;
}

Operator gemm(std::int64_t m, std::int64_t n, std::int64_t k, DataType type) {
  Operator op;
  op.kind = OperatorKind::kGemm;
  op.flops = Flops{2 * m * n * k};
  op.m = m;
  op.n = n;
  op.k = k;
  op.precision = type;
  return op;
}

double microseconds(const Work& work) {
  Int128 sum = 0;
  for (const std::int64_t part : work)
    sum += part;
  return static_cast<double>(sum) / 1e6;
}

// 8192 cubed on H100, by hand: 2 x 8192^3 FLOP at .8 of 1979 TFLOP/s in FP8, at .71 of 989 in BF16;
// the harmonic size is 8192 / 3, the half sizes are 710 and 190; 2 us are fixed.
TEST(NarrowGemm, TimeByHand) {
  const OperatorPrices prices(scenario_on("dgx-h100-ndr400", R"("fp8")"));
  const double flops = 2.0 * 8192.0 * 8192.0 * 8192.0;
  const double fp8 = flops / (1979e12 * 0.8 / (1 + 710 * 3 / 8192.0)) * 1e6 + 2;
  EXPECT_NEAR(microseconds(prices.kernel(gemm(8192, 8192, 8192, DataType::kFp8))), fp8, 1e-3);
  const double bf16 = flops / (989e12 * 0.71 / (1 + 190 * 3 / 8192.0)) * 1e6 + 2;
  EXPECT_NEAR(microseconds(prices.kernel(gemm(8192, 8192, 8192, DataType::kBf16))), bf16, 1e-3);
  EXPECT_EQ(prices.kernel(gemm(8192, 8192, 8192, DataType::kFp16)),
            prices.kernel(gemm(8192, 8192, 8192, DataType::kBf16)));
}

/// Times of the twelve GEMMs of a layer of hidden 4096 and MLP width 16384 on 15,872 tokens, and of
/// casting both operands of each: Transformer Engine's GEMM profiling tutorial.
struct LayerTime {
  double gemms = 0, with_casts = 0;
};

LayerTime layer_time(const std::string& topology, const std::string& dtype) {
  const Scenario scenario = scenario_on(topology, dtype);
  const OperatorPrices prices(scenario);
  BlockContext context;
  context.precision = scenario.training.dtype;
  context.transposed_operands = scenario.cluster.hardware.gpu.nvfp4_dense.flops_per_second == 0;
  const Quantisation quantisation(context);
  LayerTime time;
  const auto moved = [&](std::int64_t bytes) {
    Operator op;
    op.bytes = Bytes{bytes};
    return microseconds(prices.kernel(op));
  };
  const auto run = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const double alone = microseconds(prices.kernel(gemm(m, n, k, context.precision.compute)));
    time.gemms += alone;
    time.with_casts += alone;
    for (const std::int64_t elements : {m * k, k * n}) {
      if (quantisation.on())
        time.with_casts += moved(2 * elements + quantisation.copied_bytes(elements));
      if (quantisation.scans())
        time.with_casts += moved(2 * elements);
    }
  };
  constexpr std::int64_t kTokens = 31 * 512;
  struct Layer {
    std::int64_t n, k;
  };
  for (const Layer& layer :
       {Layer{12288, 4096}, Layer{4096, 4096}, Layer{16384, 4096}, Layer{4096, 16384}}) {
    run(kTokens, layer.n, layer.k);
    run(kTokens, layer.k, layer.n);
    run(layer.k, layer.n, kTokens);
  }
  return time;
}

struct Measured {
  const char *topology, *dtype;
  double raw, with_casts;  ///< times faster than BF16; raw 0: not measured
  double tolerance;
};

// H200 NVL and B300. What NVFP4 casts do beside moving bytes, Hadamard transforms and stochastic
// rounding, is not modelled.
TEST(NarrowGemm, SpeedupsOfALayerAsMeasured) {
  constexpr Measured kMeasured[] = {
      {"hgx-h200-ndr400", R"({"compute": "fp8", "recipe": "delayed"})", 0, 1.69, 0.05},
      {"hgx-h200-ndr400", R"({"compute": "fp8", "recipe": "tensorwise"})", 1.90, 1.58, 0.05},
      {"dgx-b300-xdr800", R"({"compute": "fp8", "recipe": "delayed"})", 0, 1.64, 0.10},
      {"dgx-b300-xdr800", R"({"compute": "fp8", "recipe": "tensorwise"})", 1.92, 1.39, 0.10},
      {"dgx-b300-xdr800", R"({"compute": "fp8", "recipe": "mxfp8"})", 1.83, 1.42, 0.10},
      {"dgx-b300-xdr800", R"("nvfp4")", 3.48, 1.98, 0.20},
  };
  for (const Measured& row : kMeasured) {
    SCOPED_TRACE(std::string(row.topology) + " " + row.dtype);
    const double wide = layer_time(row.topology, R"("bf16")").gemms;
    const LayerTime narrow = layer_time(row.topology, row.dtype);
    if (row.raw > 0) {
      EXPECT_NEAR(wide / narrow.gemms / row.raw, 1.0, 0.10);
    }
    EXPECT_NEAR(wide / narrow.with_casts / row.with_casts, 1.0, row.tolerance);
  }
}

}  // namespace
}  // namespace foretrain
