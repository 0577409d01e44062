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
  return matrices * std::min(elements,
                             kDepth) * table.panel_columns * static_cast<long>(sizeof(float));
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
  const long wanted = std::min<long>(kPartsPerThread * threads(),
                                     static_cast<long>(operations / kPartCost));

  Grid grid;
  grid.rows = std::min(rows, kRowsPerPart);
  grid.panels = std::clamp(kWeightBytes / panel_bytes, 1L, panels);
  const auto parts = [&] { return ceilDivide(rows, grid.rows) * ceilDivide(panels, grid.panels); };
  while (parts() < wanted && grid.panels > 1) grid.panels = (grid.panels + 1) / 2;
  while (parts() < wanted && grid.rows > 2 * table.tile_rows) grid.rows = ceilDivide(grid.rows, 2);
  // Even parts, of whole tiles.
  grid.rows = ceilDivide(ceilDivide(rows, ceilDivide(rows, grid.rows)),
                         table.tile_rows) * table.tile_rows;
  grid.panels = ceilDivide(panels, ceilDivide(panels, grid.panels));
  grid.row_parts = ceilDivide(rows, grid.rows);
  grid.panel_parts = ceilDivide(panels, grid.panels);
  return grid;
}

/// All outputs for some rows, on this thread.
void linearRows(const KernelTable &table, const LinearTask &task, long first_row, long last_row) {
  const long panels = ceilDivide(task.outputs, table.panel_columns);
  const long step = std::max(1L, kWeightBytes / bytesOfPanel(table, task));
  for (long panel = 0; panel < panels; panel += step)
    table.linear(task, {first_row, last_row, panel, std::min(panel + step, panels)});
}

/// Rows per part where a thread does all of a row's outputs; 0 where there are too few rows for
/// that.
long rowsPerPart(const KernelTable &table, long rows) {
  const long parts = kPartsPerThread * threads();
  const long least = 2 * table.tile_rows;
  if (rows < parts / 2 * least) return 0;
  const long wanted = std::clamp(ceilDivide(rows, parts), least, kRowsPerPart);
  return ceilDivide(wanted, table.tile_rows) * table.tile_rows;
}

Matrix at(const Matrix &matrix, long row, long column) {
  return {matrix.values + row * matrix.stride + column, matrix.stride};
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
  task.first_query = range.first;
  task.last_query = range.last;
  task.result_stride = all.heads * all.head_dim;
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
  forRanges(panels, 4.0 * inputs * table.panel_columns,
            [&](long first, long last) { table.pack(weights, inputs, outputs, first, last,
                                                    packed); });
}

void runLinear(const KernelTable &table, const LinearTask &task, long rows, const Norm *norm) {
  const long panels = ceilDivide(task.outputs, table.panel_columns);
  const Grid grid = cut(table, task, rows);
  // Who completes a block of rows normalises it, while it is in the cache.
  std::unique_ptr<std::atomic<long>[]> open;
  if (norm) {
    open.reset(new std::atomic<long>[grid.row_parts]);
    for (long i = 0; i < grid.row_parts; i++) open[i].store(grid.panel_parts,
        std::memory_order_relaxed);
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
  double operations = 0;
  long start = 0;
  for (long row = 0; row < all.rows; row++) {
    const long tokens = all.lengths[row];
    forQueryRanges(table, all, row, start,
                   [&](const QueryRange &range) { ranges.push_back(range); });
    operations += (6.0 * all.head_dim + 40) * tokens * (tokens + all.past) * all.heads;
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
                   long rows,
                   const Norm *norm) {
  const long step = rowsPerPart(table, rows);
  if (step == 0) {
    LinearTask inner = first, outer = second;
    inner.result = threadScratch(Scratch::schedule, rows * inner.outputs);
    outer.x = {inner.result, inner.outputs};
    runLinear(table, inner, rows, nullptr);
    runLinear(table, outer, rows, norm);
    return;
  }
  parallelFor(ceilDivide(rows, step), [&](long part) {
    const long row = part * step;
    const long count = std::min(step, rows - row);
    LinearTask inner = first;
    inner.x = at(first.x, row, 0);
    inner.result = threadScratch(Scratch::schedule, count * inner.outputs);
    linearRows(table, inner, 0, count);
    LinearTask outer = second;
    outer.x = {inner.result, inner.outputs};
    outer.result += row * outer.outputs;
    if (outer.residual) outer.residual += row * outer.outputs;
    linearRows(table, outer, 0, count);
    if (norm) table.norm(*norm, outer.result, count, outer.outputs, outer.result);
  });
}

void runSelfAttention(const KernelTable &table, const LinearTask &qkv,
                      const RaggedAttention &attention) {
  struct Part {
    long first_row, last_row;
    long start, tokens;
  };
  long total = 0;
  for (long row = 0; row < attention.rows; row++) total += attention.lengths[row];
  // Whole rows of tokens, as many as make a good part.
  std::vector<Part> parts;
  const long wanted = rowsPerPart(table, total);
  long start = 0;
  for (long row = 0; row < attention.rows; row++) {
    const long tokens = attention.lengths[row];
    if (parts.empty() || parts.back().tokens + tokens > wanted) parts.push_back({row, row, start,
        0});
    parts.back().last_row = row + 1;
    parts.back().tokens += tokens;
    start += tokens;
  }
  const long width = attention.heads * attention.head_dim;
  const long kv_width = attention.kv_heads * attention.head_dim;
  const auto split = [&](RaggedAttention &of, const float *product) {
    of.q = {product, qkv.outputs};
    of.k = {product + width, qkv.outputs};
    of.v = {product + width + kv_width, qkv.outputs};
  };
  if (wanted == 0 || static_cast<long>(parts.size()) < kPartsPerThread / 2 * threads()) {
    LinearTask whole = qkv;
    whole.result = threadScratch(Scratch::schedule, total * qkv.outputs);
    runLinear(table, whole, total, nullptr);
    RaggedAttention all = attention;
    split(all, whole.result);
    runAttention(table, all);
    return;
  }
  parallelFor(static_cast<long>(parts.size()), [&](long index) {
    const Part &part = parts[index];
    LinearTask own = qkv;
    own.x = at(qkv.x, part.start, 0);
    own.result = threadScratch(Scratch::schedule, part.tokens * qkv.outputs);
    linearRows(table, own, 0, part.tokens);
    RaggedAttention rows = attention;
    split(rows, own.result);
    rows.result += part.start * width;
    long token = 0;
    for (long row = part.first_row; row < part.last_row; token += attention.lengths[row++])
      forQueryRanges(table, rows, row, token, [&](const QueryRange &range) {
        for (long head = 0; head < rows.kv_heads; head++) attendQueries(table, rows, range, head);
      });
  });
}

} // namespace mlxcel
