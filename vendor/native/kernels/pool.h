// A few threads of our own that share the parts of one kernel.
#pragma once

namespace mlxcel {

/// Threads that work on one kernel, the calling one included.
int threads();
void setThreads(int count);

typedef void (*Part)(const void *context, long index);
void runParts(long count, Part part, const void *context);

/// Calls `body(index)` for every index below `count`, on this thread and on those of the pool that
/// have time; returns when all are done. Whoever is free takes the next index, so a thread that
/// lost its core delays no more than the part it is at. `body` must not throw.
template <class Body> void parallelFor(long count, const Body &body) {
  runParts(
      count, [](const void *context, long index) { (*static_cast<const Body *>(context))(index); },
      &body);
}

/// Below this many operations a part is not worth handing to another thread.
constexpr double kPartCost = 50e3;
/// More parts than threads: a thread that is slow or busy elsewhere takes fewer.
constexpr long kPartsPerThread = 4;

/// Calls `body(first, last)` for about equal ranges of `count` items, each worth `cost` operations.
template <class Body> void forRanges(long count, double cost, const Body &body) {
  const long worth = static_cast<long>(static_cast<double>(count) * cost / kPartCost);
  long parts = kPartsPerThread * threads();
  if (parts > worth) parts = worth;
  if (parts > count) parts = count;
  if (parts < 2) {
    if (count > 0) body(0, count);
    return;
  }
  parallelFor(parts, [&](long part) { body(count * part / parts, count * (part + 1) / parts); });
}

} // namespace mlxcel
