// Attention within ragged rows.
#include "entry_points.h"
#include "schedule.h"

using namespace mlxcel;
namespace mx = mlx::core;

namespace {

/// The memory of a part grows with the size of the heads.
constexpr int kMaxHeadDim = 512;

int headDim(const mx::array &x, int heads, const char *name) {
  const int width = widthOf(x, name);
  require(heads > 0 && width % heads == 0,
          std::string(name) + " must hold " + std::to_string(heads) + " heads");
  return width / heads;
}

/// What scores with distances need: places of the tables among the inputs, and the row of each
/// distance.
struct DistanceTable {
  int keys_at = kAbsent, queries_at = kAbsent;
  std::vector<int> rows;

  Distances matrices(const std::vector<Operand> &in) const {
    if (rows.empty()) return {};
    return {in[keys_at].matrix(), in[queries_at].matrix(), rows.data() + rows.size() / 2};
  }
};

/// What the two kinds of attention share.
struct Shape {
  std::vector<int> lengths;
  std::vector<int> attended;
  int heads, kv_heads, head_dim;
  int past;
  float scale;
  bool causal;
  int radius;
  int bias_at;  // place of the relative bias among the inputs
  int span = 0; // longest row that it is for
  DistanceTable distances = {};

  RaggedAttention task(const std::vector<Operand> &in, float *result) const {
    RaggedAttention all{};
    all.lengths = lengths.data();
    all.attended = attended.data();
    all.rows = static_cast<long>(lengths.size());
    all.past = past;
    all.heads = heads;
    all.kv_heads = kv_heads;
    all.head_dim = head_dim;
    all.scale = scale;
    all.causal = causal;
    all.radius = radius;
    if (bias_at != kAbsent) {
      all.bias = in[bias_at].matrix();
      all.bias.values += span - 1; // where query and key are the same
    }
    all.distances = distances.matrices(in);
    all.result = result;
    all.result_stride = static_cast<long>(heads) * head_dim;
    return all;
  }
};

void requireSpan(int span, const Shape &shape, const char *name) {
  int longest = 0;
  for (const int length : shape.lengths) longest = std::max(longest, shape.past + length);
  require(span >= longest, std::string(name) + " is for rows of " + std::to_string(span) +
                               " tokens, not of " + std::to_string(longest));
}

/// Completes the shape.
void checkRows(Shape &shape, const mlx_array &bias) {
  require(shape.head_dim > 0 && shape.head_dim <= kMaxHeadDim, "heads are too wide");
  require(shape.heads % shape.kv_heads == 0, "heads must be a multiple of kv_heads");
  require(shape.scale > 0, "scale must be positive");
  for (size_t row = 0; row < shape.lengths.size(); row++) {
    const int length = shape.lengths[row];
    const int attended = shape.attended[row];
    require(attended <= length && attended >= (length > 0 ? 1 : 0),
            "attention must see at least one token of a row, and none behind it");
    require(shape.radius < 0 || length - 1 - shape.radius < attended,
            "the last token of a row would see none");
  }
  if (!bias.ctx) return;
  const int columns = widthOf(mlx_array_get_(bias), "the relative bias");
  require(mlx_array_get_(bias).shape(0) == shape.heads && columns % 2 == 1,
          "the relative bias must have an odd number of columns for each head");
  shape.span = columns / 2 + 1;
  requireSpan(shape.span, shape, "the relative bias");
}

/// Tables of distances, of which the middle one of `rows` is that of a token to itself.
DistanceTable addDistances(Inputs &inputs, const Shape &shape, mlx_array keys, mlx_array queries,
                           std::vector<int> rows) {
  require(!keys.ctx == !queries.ctx && !keys.ctx == rows.empty(),
          "keys, queries and rows of distances belong together");
  if (rows.empty()) return {};
  require(shape.heads == shape.kv_heads && shape.past == 0,
          "distances need as many kv_heads as heads, and no past");
  const int count = mlx_array_get_(keys).shape(0);
  for (const mlx_array &each : {keys, queries}) {
    const mx::array &table = mlx_array_get_(each);
    require(headDim(table, shape.heads, "distances") == shape.head_dim && table.shape(0) == count,
            "keys and queries of distances must have the same rows and the head size of q");
  }
  require(rows.size() % 2 == 1, "distances must be an odd number");
  requireSpan(static_cast<int>(rows.size() / 2) + 1, shape, "the list of distances");
  for (const int row : rows)
    require(row >= 0 && row < count, std::to_string(row) + " is not a row of a distance");
  return {inputs.add(keys), inputs.add(queries), std::move(rows)};
}

} // namespace

extern "C" {

// q [tokens, heads * d], k and v [tokens, kv_heads * d], past_k and past_v [past, kv_heads * d] or
// null; `attended` [rows] leading tokens of each row that are keys; a negative radius means no
// window; relative_bias [heads, 2 * span - 1] or null, column key - query + span - 1;
// distance_keys and distance_queries [any, heads * d] or null, of which distance_rows
// [distances = 2 * span - 1] holds the row for key - query + span - 1. -> [tokens, heads * d].
int mlxcel_attention(mlx_array *res, const mlx_array q, const mlx_array k, const mlx_array v,
                     const mlx_array past_k, const mlx_array past_v, const int *lengths,
                     const int *attended, int rows, int heads, int kv_heads, float scale,
                     bool causal, int radius, const mlx_array relative_bias,
                     const mlx_array distance_keys, const mlx_array distance_queries,
                     const int *distance_rows, int distances, const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &queries = mlx_array_get_(q);
    const int head_dim = headDim(queries, heads, "q");
    require(kv_heads > 0, "kv_heads must be positive");
    require(rows == 0 || (lengths && attended), "lengths are missing");
    const int tokens = queries.shape(0);
    Inputs inputs;
    std::vector<int> places = {inputs.add(queries)};
    for (const mlx_array &each : {k, v}) {
      const mx::array &own = mlx_array_get_(each);
      require(headDim(own, kv_heads, "k and v") == head_dim && own.shape(0) == tokens,
              "k and v must have the tokens and the head size of q");
      places.push_back(inputs.add(own));
    }
    int past = 0;
    require(!past_k.ctx == !past_v.ctx, "past_k and past_v belong together");
    if (past_k.ctx) {
      require(causal, "only causal attention can continue a past");
      headDim(mlx_array_get_(past_k), kv_heads, "the past");
      past = mlx_array_get_(past_k).shape(0);
      for (const mlx_array &each : {past_k, past_v}) {
        const mx::array &earlier = mlx_array_get_(each);
        require(headDim(earlier, kv_heads, "the past") == head_dim && earlier.shape(0) == past,
                "past_k and past_v must have the same tokens and the head size of q");
        places.push_back(inputs.add(earlier));
      }
    }
    Shape shape = {rowLengths(lengths, rows, tokens),
                   std::vector<int>(attended, attended + rows),
                   heads,
                   kv_heads,
                   head_dim,
                   past,
                   scale,
                   causal,
                   radius,
                   inputs.addOptional(relative_bias)};
    checkRows(shape, relative_bias);
    shape.distances = addDistances(inputs, shape, distance_keys, distance_queries,
                                   {distance_rows, distance_rows + distances});
    const KernelTable &table = kernels();
    const auto body = [&table, places, shape = std::move(shape)](const std::vector<Operand> &in,
                                                                 float *result) {
      RaggedAttention all = shape.task(in, result);
      all.q = in[places[0]].matrix();
      all.k = in[places[1]].matrix();
      all.v = in[places[2]].matrix();
      if (places.size() > 3) {
        all.past_k = in[places[3]].matrix();
        all.past_v = in[places[4]].matrix();
      }
      runAttention(table, all);
    };
    return kernelArray({"mlxcel_attention", Rows::strided, body}, queries.shape(),
                       mlx_stream_get_(s), inputs.take());
  });
}

// Attention of x Wᵀ + bias, whose columns are the queries, keys and values of `heads` heads each: x
// [tokens, width] -> [tokens, outputs / 3]. The rest as above.
int mlxcel_self_attention(mlx_array *res, const mlx_array x, const mlx_array packed, int outputs,
                          const mlx_array bias, const int *lengths, const int *attended, int rows,
                          int heads, float scale, bool causal, int radius,
                          const mlx_array relative_bias, const mlx_array distance_keys,
                          const mlx_array distance_queries, const int *distance_rows, int distances,
                          const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &input = mlx_array_get_(x);
    const int width = widthOf(input, "x");
    requirePacked(mlx_array_get_(packed), width, outputs, "weight");
    requireVector(bias, outputs, "bias");
    require(heads > 0 && outputs % (3 * heads) == 0,
            "the outputs must hold three times " + std::to_string(heads) + " heads");
    require(rows == 0 || (lengths && attended), "lengths are missing");
    Inputs inputs;
    const int x_at = inputs.add(input);
    const int weight_at = inputs.add(packed);
    const int bias_at = inputs.addOptional(bias);
    Shape shape = {rowLengths(lengths, rows, input.shape(0)),
                   std::vector<int>(attended, attended + rows),
                   heads,
                   heads,
                   outputs / (3 * heads),
                   0,
                   scale,
                   causal,
                   radius,
                   inputs.addOptional(relative_bias)};
    checkRows(shape, relative_bias);
    shape.distances = addDistances(inputs, shape, distance_keys, distance_queries,
                                   {distance_rows, distance_rows + distances});
    const KernelTable &table = kernels();
    const auto body = [&table, x_at, weight_at, bias_at, width, outputs,
                       shape = std::move(shape)](const std::vector<Operand> &in, float *result) {
      LinearTask qkv{};
      qkv.x = in[x_at].matrix();
      qkv.inputs = width;
      qkv.outputs = outputs;
      qkv.weights = {in[weight_at].floats(), floatsAt(in, bias_at)};
      runSelfAttention(table, qkv, shape.task(in, result));
    };
    return kernelArray({"mlxcel_self_attention", Rows::strided, body},
                       {input.shape(0), outputs / 3}, mlx_stream_get_(s), inputs.take());
  });
}
}
