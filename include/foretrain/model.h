#pragma once

#include "foretrain/collective.h"
#include "foretrain/diagnostic.h"
#include "foretrain/model_config.h"
#include "foretrain/scenario.h"
#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a model is made of: blocks, their parameters, and the operators of one micro-batch.
namespace foretrain {

/// kPrediction: one multi-token-prediction module, its embedding and layer; logits and loss are the
/// head's, once more.
enum class BlockKind { kEmbedding, kDense, kMoe, kPrediction, kHead };
std::string_view to_string(BlockKind kind);

/// The model as a list of blocks: embedding, L layers, head (final norm, output projection, loss).
std::vector<BlockKind> model_blocks(const ModelConfig& model);

/// Exact parameter counts (unpadded vocabulary).
struct ParameterCount {
  std::int64_t total = 0;
  std::int64_t active = 0;           ///< per token (MoE: top-k routed and shared experts only)
  std::int64_t input_embedding = 0;  ///< looked up, never multiplied: learned positions and an
                                     ///< untied token table (a tied one is the head's matrix)
  std::int64_t mtp = 0;              ///< multi-token-prediction modules, on top of total
};
ParameterCount count_parameters(const ModelConfig& model);

/// Parameters of one block held by one of `tp` ranks: split matrices are divided, norms replicated.
/// A tied head holds its norm only: see stage_parameters.
std::int64_t block_parameters(const ModelConfig& model, BlockKind kind, std::int64_t tp);

/// Rows of the token table on one of `tp` ranks times the hidden size.
std::int64_t table_parameters(const ModelConfig& model, std::int64_t tp);

/// Parameters of one block on one rank, by the group their gradients are reduced over.
struct RankParameters {
  std::int64_t shared = 0;   ///< everything but routed experts: over dp x cp
  std::int64_t experts = 0;  ///< over edp
  std::int64_t total() const { return shared + experts; }
};
RankParameters rank_parameters(const ModelConfig& model,
                               BlockKind kind,
                               const Parallelism& degrees);

enum class FlopsConvention { kCausal, kFull, kHardware };
std::string_view to_string(FlopsConvention convention);

/// Model FLOPs per token, forward and backward (MODEL 2): causal = 6 (active - input embedding)
/// + 6 L a d s; full = the same with 12 L a d s. kHardware adds recomputation: `recomputed` is the
/// FLOPs per token done again. `predictions`: multi-token-prediction modules trained with it.
double flops_per_token(const ModelConfig& model,
                       std::int64_t sequence_length,
                       FlopsConvention convention,
                       double recomputed = 0.0,
                       std::int64_t predictions = 0);

// --- operators ---------------------------------------------------------------------------------

enum class OperatorKind {
  kGemm,
  kAttention,
  kNorm,
  kElementwise,
  kEmbedding,
  kLoss,
  kHostSync,  ///< the host waits for the device (token counts): no work, the stack's time
  kCollective
};

/// The one dimension of the mesh an operator's collective runs over; never ranks.
enum class MeshDimension { kTp, kCp, kEp, kEtp };

enum class Pass { kForward, kInputGradient, kWeightGradient, kRecompute };

/// One kernel or collective of one micro-batch on one rank.
struct Operator {
  std::string_view name;  ///< static storage: "qkv", "attention", "mlp up", "tp all-gather", ...
  OperatorKind kind = OperatorKind::kElementwise;
  Pass pass = Pass::kForward;
  Flops flops;  ///< model FLOPs (attention counted causal); recompute passes count theirs too
  Bytes bytes;  ///< HBM traffic
  std::int64_t m = 0, n = 0, k = 0;  ///< GEMM: rows, columns, inner size. Attention: m = sequence,
                                     ///< n = heads on this rank, k = head dim
  std::int64_t gemms = 1;            ///< grouped GEMM: so many of m x n x k side by side
  DataType precision = DataType::kBf16;  ///< what a GEMM or attention computes in
  CollectiveKind collective = CollectiveKind::kAllReduce;
  MeshDimension dimension = MeshDimension::kTp;
  Bytes payload;  ///< collectives: nccl-tests size
  /// A collective beside the kernels: it waits for its inputs only, not for the kernel before it.
  bool detached = false;
  /// Expert all-to-all: the payload holds every token this often (top-k); a dispatcher that
  /// forwards inside nodes sends one copy per node.
  std::int64_t copies = 1;
  std::vector<std::int32_t> inputs;  ///< operators of the same list it waits for
};

/// Bytes an operator keeps from its forward until its backward, on one rank.
struct Stash {
  std::string_view name;
  Bytes bytes;
};

/// The operators of one block for one micro-batch, each list a DAG in issue order (topological).
struct BlockOperators {
  std::vector<Operator> forward;
  std::vector<Operator>
      backward;  ///< input and weight gradients in the framework's order, recomputation first
  std::vector<Operator>
      input_gradient;  ///< the same split in two: backward == both, operator by operator
  std::vector<Operator> weight_gradient;
  std::vector<Stash> stash;
  Bytes logits;           ///< head only: logits and their gradient while the loss runs
  Bytes logits_gradient;  ///< of these, what the head's weight gradient still needs
};

/// Everything the operators of a block depend on beside the model.
struct BlockContext {
  std::int64_t sequence_length = 0;  ///< of the sequence, or of one slice of it
  std::int64_t prefix_length = 0;    ///< tokens of earlier slices, which attention sees too
  std::int64_t micro_batch_size = 1;
  std::int64_t tp = 1;
  bool sequence_parallel = true;
  RecomputeMode recompute = RecomputeMode::kNone;  ///< of this block
  std::int64_t element_bytes = 2;
  std::int64_t grad_element_bytes = 4;
  bool fused_operators = true;
  bool flash_attention = true;
  bool fused_gradient_accumulation = true;
  bool textbook = false;  ///< no gather of the saved input in backward, weight gradients wait for
                          ///< the collective before them (costs: constant)
  PrecisionSpec precision;
  bool transposed_operands = true;   ///< 8-bit GEMMs read along rows only: Hopper, not Blackwell
  bool weights_arrive_wide = false;  ///< zero3: gathered in 16 bits, quantised at every use

  std::int64_t cp = 1;
  ContextKind cp_kind = ContextKind::kRing;
  bool overlap_cp = true;            ///< ring transfers beside attention, or one after the other
  std::int64_t document_length = 0;  ///< tokens attend within documents of so many; 0: everywhere

  std::int64_t ep = 1, etp = 1;
  double expert_load = 1.0;      ///< tokens at the hottest rank's experts over the mean
  double expert_capacity = 0.0;  ///< capacity factor, experts padded to it; 0: dropless
  std::string dispatcher = "alltoall";
  std::vector<std::string> recompute_modules;  ///< kModules: core_attn, layernorm, mlp, moe, ...
};

BlockOperators block_operators(const ModelConfig& model,
                               BlockKind kind,
                               const BlockContext& context);

Bytes stash_bytes(const BlockOperators& operators);

/// Distinct nodes a token's top-k experts lie in, on average, when the experts are spread evenly
/// over `nodes` and chosen evenly within the groups the router allows.
double nodes_per_token(const ModelConfig& model, std::int64_t nodes);

/// The activation passed between stages, on one rank (split over tp with sequence parallelism).
Bytes boundary_bytes(const ModelConfig& model, const BlockContext& context);

/// Operator graph in Graphviz, for people.
std::string operators_dot(const std::vector<Operator>& operators);

// --- stages ------------------------------------------------------------------------------------

/// A slice of the model's block list: one virtual stage.
struct StageSlice {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;  ///< transformer layers; may be 0
  bool embedding = false;
  bool head = false;
  std::int64_t predictions = 0;  ///< multi-token-prediction modules, before the head
};

/// Slices from the resolved layers_per_stage: embedding on the first virtual stage, head on the
/// last.
std::vector<StageSlice> stage_slices(const ModelConfig& model, const Parallelism& parallelism);

/// Whether a stage keeps the embedding table: the first one, a tied head, prediction modules.
bool holds_embedding_table(const ModelConfig& model, const StageSlice& slice);

/// Parameters of a stage held by one of `tp` ranks; a stage that needs the embedding table without
/// being the first keeps a copy of it.
std::int64_t stage_parameters(const ModelConfig& model, const StageSlice& slice, std::int64_t tp);

/// Names of the presets in scenarios/models/.
std::vector<std::string> model_presets();

}  // namespace foretrain
