import { expect, test } from "bun:test";
import { BYTES, countOf, Progress } from "./progress.ts";

/** What is written when a run of a hundred texts calls at these times, in milliseconds. */
function written(times: readonly number[], isTTY: boolean): string[] {
  const lines: string[] = [];
  let now = 0;
  const stream = { isTTY, write: (text: string) => lines.push(text) };
  const progress = new Progress({ stream, unit: countOf("texts"), total: 100, now: () => now });
  times.forEach((time, i) => {
    now = time;
    progress.update((i + 1) * 10);
  });
  progress.end();
  return lines;
}

test("a run of less than two seconds shows nothing", () => {
  expect(written([500, 1999], true)).toEqual([]);
  expect(written([500, 1999], false)).toEqual([]);
});

test("a terminal has one line that is rewritten and cleared at the end", () => {
  expect(written([1000, 2000, 2050, 4000], true)).toEqual([
    "\r\u001b[2K████░░░░░░░░░░░░░░░░ 20 of 100 texts, 10.0/s, 8 s left",
    "\r\u001b[2K████████░░░░░░░░░░░░ 40 of 100 texts, 10.0/s, 6 s left",
    "\r\u001b[2K",
  ]);
});

test("a log gets a line now and then, without control characters", () => {
  expect(written([2000, 3000, 11_000, 12_000], false)).toEqual([
    "10 of 100 texts, 5.0/s, 18 s left\n",
    "40 of 100 texts, 3.3/s, 18 s left\n",
  ]);
});

test("bytes have units, what was there before does not count for the speed, and no line wraps", () => {
  const lines: string[] = [];
  let now = 0;
  const stream = { isTTY: true, columns: 60, write: (text: string) => lines.push(text) };
  const total = 500e6;
  const progress = new Progress({
    stream,
    unit: BYTES,
    total,
    alreadyDone: 100e6,
    silentMs: 0,
    now: () => now,
  });
  progress.update(100e6);
  now = 1000;
  progress.update(101e6);
  expect(lines).toEqual([
    "\r\u001b[2K████░░░░░░░░░░░░░░░░ 100.0 MB of 500.0 MB",
    "\r\u001b[2K████░░░░░░░░░░░░░░░░ 101.0 MB of 500.0 MB, 1.0 MB/s, 7 min ",
  ]);
});
