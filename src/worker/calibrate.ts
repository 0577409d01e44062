import type { EmbedJob, RerankJob } from "./job.ts";
import type { Pace } from "./pace.ts";
import type { BatchRow, Task } from "./task.ts";
import type { Workload } from "./workload.ts";

/** Short texts per batch: the first warms up, the others tell the pace. */
const SIZES = [1, 12, 48];

/** A size that would take longer than this is left out. */
const LONGEST_RUN_MS = 100;

/**
 * Runs a few batches of growing size before the first request, so that it does not pay for first-time costs and the
 * pace is known from the start.
 */
export function calibrate<Row extends BatchRow>(
  workload: Workload<Row>,
  pace: Pace,
  jobOf: (texts: readonly string[]) => EmbedJob | RerankJob,
): void {
  for (const size of SIZES) {
    const texts = Array.from({ length: size }, (_, i) => `text ${i} to warm up and find the pace`);
    const task = workload.open(0, jobOf(texts), new SharedArrayBuffer(4));
    const rows = rowsOf(task);
    const tokens = rows.reduce((sum, row) => sum + row.ids.length, 0);
    const affordable = pace.tokensWithin(LONGEST_RUN_MS) ?? Infinity;
    if (tokens <= affordable) {
      const startedAtMs = performance.now();
      workload.start(rows).read();
      pace.record(tokens, performance.now() - startedAtMs);
    }
    task.settle();
  }
}

function rowsOf<Row extends BatchRow>(task: Task<Row>): Row[] {
  const rows: Row[] = [];
  while (!task.allStarted) {
    rows.push(task.peek());
    task.advance();
  }
  return rows;
}
