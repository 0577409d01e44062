import type { TimeSpent } from "../worker/time-account.ts";
import { tableText } from "./table.ts";

/** Requests wait while others run: no work is done for them then. */
const WAIT = "wait";

/**
 * A table of where the time went, the most expensive first, with shares of all work. `wait` has no share: it is the
 * time of requests in the queue.
 */
export function profileReport(times: readonly TimeSpent[], colour: boolean): string {
  const work = times.filter(({ name }) => name !== WAIT).reduce((sum, { ms }) => sum + ms, 0);
  const rows = times
    .toSorted((a, b) => b.ms - a.ms)
    .map(({ name, ms, times: count }) => [
      name,
      ms.toFixed(1),
      name === WAIT ? "" : `${((100 * ms) / work).toFixed(1)} %`,
      String(count),
      (ms / count).toFixed(3),
    ]);
  return tableText(
    [
      { title: "phase", align: "left" },
      { title: "ms", align: "right" },
      { title: "share", align: "right" },
      { title: "times", align: "right" },
      { title: "ms each", align: "right" },
    ],
    rows,
    colour,
  );
}
