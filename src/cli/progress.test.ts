import { expect, test } from "bun:test";
import { Progress } from "./progress.ts";

/** What is written when a run of a hundred texts calls at these times, in milliseconds. */
function written(times: readonly number[], isTTY: boolean): string[] {
  const lines: string[] = [];
  let now = 0;
  const stream = { isTTY, write: (text: string) => lines.push(text) };
  const progress = new Progress({ stream, noun: "texts", total: 100, now: () => now });
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
    "\r\u001b[2K20 of 100 texts, 10.0/s, 8 s left",
    "\r\u001b[2K40 of 100 texts, 10.0/s, 6 s left",
    "\r\u001b[2K",
  ]);
});

test("a log gets a line now and then, without control characters", () => {
  expect(written([2000, 3000, 11_000, 12_000], false)).toEqual([
    "10 of 100 texts, 5.0/s, 18 s left\n",
    "40 of 100 texts, 3.3/s, 18 s left\n",
  ]);
});
