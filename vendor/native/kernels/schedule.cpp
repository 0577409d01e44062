#include "schedule.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "pool.h"

namespace mlxcel {
namespace {

long ceilDivide(long a, long b) { return (a + b - 1) / b; }

/// Packed weights that a part works with: they stay in the L2 cache for all of its rows.
constexpr long kWeightBytes = 384 << 10;
/// Rows of a part: enough to be worth loading its weights.
constexpr long kRowsPerPart = 96;
/// Queries of a part, over all heads that share keys.
constexpr long kQueriesPerPart = 256;

long bytesOfPanel(const KernelTable &table, const LinearTask &task) {
  const long matrices = task.up.packed ? 2 : 1;
  const long elements = ceilDivide(task.inputs, table.element_inputs);
  return matrices * std::min(elements, kDepth) * table.panel_columns *
         static_cast<long>(sizeof(float));
}

/// How a product is cut: into parts of `rows` rows by `panels` panels.
struct Grid {
  long rows, panels;
  long row_parts, panel_parts;
};

Grid cut(const KernelTable &table, const LinearTask &task, long rows) {
  const long panels = ceilDivide(task.outputs, table.panel_columns);
  const long matrices = task.up.packed ? 2 : 1;
  const long panel_bytes = bytesOfPanel(table, task);
  const double operations = 2.0 * rows * task.inputs * task.outputs * matrices;
  const long wanted =
      std::min<long>(kPartsPerThread * threads(), static_cast<long>(operations / kPartCost));

  Grid grid;
  grid.rows = std::min(rows, kRowsPerPart);
  grid.panels = std::clamp(kWeightBytes / panel_bytes, 1L, panels);
  const auto parts = [&] { return ceilDivide(rows, grid.rows) * ceilDivide(panels, grid.panels); };
  while (parts() < wanted && grid.panels > 1) grid.panels = (grid.panels + 1) / 2;
  while (parts() < wanted && grid.rows > 2 * table.tile_rows) grid.rows = ceilDivide(grid.rows, 2);
  // Even parts, of whole tiles.
  grid.rows =
      ceilDivide(ceilDivide(rows, ceilDivide(rows, grid.rows)), table.tile_rows) * table.tile_rows;
  grid.panels = ceilDivide(panels, ceilDivide(panels, grid.panels));
  grid.row_parts = ceilDivide(rows, grid.rows);
  grid.panel_parts = ceilDivide(panels, grid.panels);
  return grid;
}

/// All outputs for the first rows, on this thread.
void linearRows(const KernelTable &table, const LinearTask &task, long rows) {
  const long panels = ceilDivide(task.outputs, table.panel_columns);
  const long step = std::max(1L, kWeightBytes / bytesOfPanel(table, task));
  for (long panel = 0; panel < panels; panel += step)
    table.linear(task, {0, rows, panel, std::min(panel + step, panels)});
}

/// The fewest rows of a part in which a thread does all of a row's outputs.
long leastRows(const KernelTable &table) { return 2 * table.tile_rows; }

/// Whether there are rows enough for parts in which a thread does all of a row's outputs.
bool manyRows(const KernelTable &table, long rows) {
  return rows >= kPartsPerThread / 2 * threads() * leastRows(table);
}

/// Where parts of rows begin and, at last, end. They are large at first, as each loads all weights,
/// and then smaller and smaller: all threads come to an end at about the same time.
std::vector<long> shrinkingParts(const KernelTable &table, long rows) {
  std::vector<long> bounds{0};
  while (bounds.back() < rows) {
    const long left = rows - bounds.back();
    const long share = std::clamp(left / (2 * threads()), leastRows(table), kRowsPerPart);
    const long size = ceilDivide(share, table.tile_rows) * table.tile_rows;
    bounds.push_back(left < size + table.tile_rows ? rows : bounds.back() + size);
  }
  return bounds;
}

Matrix at(const Matrix &matrix, long row, long column) {
  return {matrix.values + row * matrix.stride + column, matrix.stride};
}

Distances atColumn(const Distances &distances, long column) {
  return {at(distances.keys, 0, column), at(distances.queries, 0, column), distances.rows};
}

/// Some queries of one row.
struct QueryRange {
  long start; // first token of the row
  long keys;
  long first, last;
};

void attendQueries(const KernelTable &table, const RaggedAttention &all, const QueryRange &range,
                   long kv_head) {
  const long group = all.heads / all.kv_heads;
  const long kv_column = kv_head * all.head_dim;
  const long column = kv_column * group;
  AttentionTask task;
  task.q = at(all.q, range.start, column);
  task.k = at(all.k, range.start, kv_column);
  task.v = at(all.v, range.start, kv_column);
  task.keys = range.keys;
  task.past_k = at(all.past_k, 0, kv_column);
  task.past_v = at(all.past_v, 0, kv_column);
  task.past = all.past;
  task.heads = group;
  task.head_dim = all.head_dim;
  task.scale = all.scale;
  task.causal = all.causal;
  task.radius = all.radius;
  task.bias = all.bias;
  if (all.bias.values) task.bias.values += kv_head * group * all.bias.stride;
  task.distances = atColumn(all.distances, column);
  task.first_query = range.first;
  task.last_query = range.last;
  task.result_stride = all.result_stride;
  task.result = all.result + range.start * task.result_stride + column;
  table.attention(task);
}

/// Cuts a row, whose first token is `start`, into ranges of queries.
template <class Use> void forQueryRanges(const KernelTable &table, const RaggedAttention &all,
                                         long row, long start, const Use &use) {
  const long tokens = all.lengths[row];
  const long queries = std::max(table.tile_rows, kQueriesPerPart / (all.heads / all.kv_heads));
  const long pieces = ceilDivide(tokens, queries);
  for (long i = 0; i < pieces; i++)
    use(QueryRange{start, all.attended[row], tokens * i / pieces, tokens * (i + 1) / pieces});
}

} // namespace

void packWeights(const KernelTable &table, const float *weights, long inputs, long outputs,
                 float *packed) {
  const long panels = ceilDivide(outputs, table.panel_columns);
  forRanges(panels, 4.0 * inputs * table.panel_columns, [&](long first, long last) {
    table.pack(weights, inputs, outputs, first, last, packed);
  });
}

void runLinear(const KernelTable &table, const LinearTask &task, long rows, const Norm *norm) {
  const long panels = ceilDivide(task.outputs, table.panel_columns);
  const Grid grid = cut(table, task, rows);
  // Who completes a block of rows normalises it, while it is in the cache.
  std::unique_ptr<std::atomic<long>[]> open;
  if (norm) {
    open.reset(new std::atomic<long>[grid.row_parts]);
    for (long i = 0; i < grid.row_parts; i++)
      open[i].store(grid.panel_parts, std::memory_order_relaxed);
  }
  parallelFor(grid.row_parts * grid.panel_parts, [&](long part) {
    const long row_part = part % grid.row_parts;
    const long panel = part / grid.row_parts * grid.panels;
    const long row = row_part * grid.rows;
    const Block block = {row, std::min(row + grid.rows, rows), panel,
                         std::min(panel + grid.panels, panels)};
    table.linear(task, block);
    if (!norm || open[row_part].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    float *complete = task.result + block.first_row * task.outputs;
    table.norm(*norm, complete, block.last_row - block.first_row, task.outputs, complete);
  });
}

void runNorm(const KernelTable &table, const Norm &norm, const float *x, long rows, long width,
             float *result) {
  forRanges(rows, 8.0 * width, [&](long first, long last) {
    table.norm(norm, x + first * width, last - first, width, result + first * width);
  });
}

void runAttention(const KernelTable &table, const RaggedAttention &all) {
  std::vector<QueryRange> ranges;
  const double per_pair = (all.distances.rows ? 12.0 : 6.0) * all.head_dim + 40;
  double operations = 0;
  long start = 0;
  for (long row = 0; row < all.rows; row++) {
    const long tokens = all.lengths[row];
    forQueryRanges(table, all, row, start,
                   [&](const QueryRange &range) { ranges.push_back(range); });
    operations += per_pair * tokens * (tokens + all.past) * all.heads;
    start += tokens;
  }
  const long units = static_cast<long>(ranges.size()) * all.kv_heads;
  if (units == 0) return;
  forRanges(units, operations / units, [&](long first, long last) {
    for (long unit = first; unit < last; unit++)
      attendQueries(table, all, ranges[unit / all.kv_heads], unit % all.kv_heads);
  });
}

void runLinearPair(const KernelTable &table, const LinearTask &first, const LinearTask &second,
                   long rows, const Norm *norm) {
  if (!manyRows(table, rows)) {
    LinearTask inner = first, outer = second;
    inner.result = threadScratch(Scratch::schedule, rows * inner.outputs);
    outer.x = {inner.result, inner.outputs};
    runLinear(table, inner, rows, nullptr);
    runLinear(table, outer, rows, norm);
    return;
  }
  const std::vector<long> bounds = shrinkingParts(table, rows);
  parallelFor(static_cast<long>(bounds.size()) - 1, [&](long part) {
    const long row = bounds[part];
    const long count = bounds[part + 1] - row;
    LinearTask inner = first;
    inner.x = at(first.x, row, 0);
    inner.result = threadScratch(Scratch::schedule, count * inner.outputs);
    linearRows(table, inner, count);
    LinearTask outer = second;
    outer.x = {inner.result, inner.outputs};
    outer.result += row * outer.outputs;
    if (outer.residual) outer.residual += row * outer.outputs;
    linearRows(table, outer, count);
    if (norm) table.norm(*norm, outer.result, count, outer.outputs, outer.result);
  });
}

namespace {

/// What one thread takes from the projections to the result.
struct AttentionPart {
  long first_row, last_row;
  long start, tokens;
  long first_head, heads;
};

/// Into how many groups, at most `wanted`, heads can be put evenly, each of whole panels of its
/// projections; 0 where they cannot.
long headGroups(const KernelTable &table, const RaggedAttention &attention, long wanted) {
  for (long groups = std::clamp(wanted, 1L, attention.heads); groups > 0; groups--) {
    const long columns = attention.heads / groups * attention.head_dim;
    if (attention.heads % groups == 0 && columns % table.panel_columns == 0) return groups;
  }
  return 0;
}

/// Whole rows of tokens, as many as make a good part, each for some of the heads; the largest
/// first, so that all threads come to an end at about the same time. Too few where there is no way
/// to cut.
std::vector<AttentionPart> attentionParts(const KernelTable &table,
                                          const RaggedAttention &attention, long tokens) {
  const long wanted = kPartsPerThread * threads();
  const long size = std::clamp(tokens / wanted, leastRows(table), kRowsPerPart);
  std::vector<AttentionPart> whole;
  long start = 0;
  for (long row = 0; row < attention.rows; row++) {
    const long length = attention.lengths[row];
    if (whole.empty() || whole.back().tokens + length > size)
      whole.push_back({row, row, start, 0, 0, 0});
    whole.back().last_row = row + 1;
    whole.back().tokens += length;
    start += length;
  }
  const long count = static_cast<long>(whole.size());
  const long groups = headGroups(table, attention, ceilDivide(2 * wanted, count));
  std::vector<AttentionPart> parts;
  for (long group = 0; group < groups; group++)
    for (AttentionPart part : whole) {
      part.heads = attention.heads / groups;
      part.first_head = group * part.heads;
      parts.push_back(part);
    }
  std::stable_sort(parts.begin(), parts.end(), [](const AttentionPart &a, const AttentionPart &b) {
    return a.tokens > b.tokens;
  });
  return parts;
}

/// The outputs from `first` on, which begins a panel.
LinearTask outputsOf(const KernelTable &table, const LinearTask &task, long first, long outputs) {
  LinearTask some = task;
  some.outputs = outputs;
  some.weights.packed += first * ceilDivide(task.inputs, table.element_inputs);
  if (some.weights.bias) some.weights.bias += first;
  return some;
}

void runAttentionPart(const KernelTable &table, const LinearTask &qkv,
                      const RaggedAttention &attention, const AttentionPart &part) {
  const long columns = part.heads * attention.head_dim;
  const long first = part.first_head * attention.head_dim;
  float *const products = threadScratch(Scratch::schedule, 3 * part.tokens * columns);
  const auto project = [&](long which) {
    const long column = which * attention.heads * attention.head_dim + first;
    LinearTask own = outputsOf(table, qkv, column, columns);
    own.x = at(qkv.x, part.start, 0);
    own.result = products + which * part.tokens * columns;
    linearRows(table, own, part.tokens);
    return Matrix{own.result, columns};
  };
  RaggedAttention own = attention;
  own.q = project(0);
  own.k = project(1);
  own.v = project(2);
  own.heads = own.kv_heads = part.heads;
  own.result += part.start * attention.result_stride + first;
  if (own.bias.values) own.bias.values += part.first_head * own.bias.stride;
  own.distances = atColumn(own.distances, first);
  long token = 0;
  for (long row = part.first_row; row < part.last_row; token += attention.lengths[row++])
    forQueryRanges(table, own, row, token, [&](const QueryRange &range) {
      for (long head = 0; head < part.heads; head++) attendQueries(table, own, range, head);
    });
}

} // namespace

void runSelfAttention(const KernelTable &table, const LinearTask &qkv,
                      const RaggedAttention &attention) {
  long total = 0;
  for (long row = 0; row < attention.rows; row++) total += attention.lengths[row];
  std::vector<AttentionPart> parts;
  if (manyRows(table, total)) parts = attentionParts(table, attention, total);
  if (static_cast<long>(parts.size()) >= kPartsPerThread / 2 * threads()) {
    parallelFor(static_cast<long>(parts.size()),
                [&](long index) { runAttentionPart(table, qkv, attention, parts[index]); });
    return;
  }
  LinearTask whole = qkv;
  whole.result = threadScratch(Scratch::schedule, total * qkv.outputs);
  runLinear(table, whole, total, nullptr);
  const long width = attention.heads * attention.head_dim;
  RaggedAttention all = attention;
  all.q = {whole.result, qkv.outputs};
  all.k = {whole.result + width, qkv.outputs};
  all.v = {whole.result + 2 * width, qkv.outputs};
  runAttention(table, all);
}

} // namespace mlxcel
