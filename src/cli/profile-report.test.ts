import { expect, test } from "bun:test";
import { profileReport } from "./profile-report.ts";

test("shares are of the work, which waiting is not part of", () => {
  const report = profileReport(
    [
      { name: "tokenize", ms: 25, times: 5 },
      { name: "wait", ms: 900, times: 5 },
      { name: "eval linear", ms: 75, times: 10 },
    ],
    false,
  );
  expect(report.split("\n")).toEqual([
    "phase           ms   share  times  ms each",
    "wait         900.0              5  180.000",
    "eval linear   75.0  75.0 %     10    7.500",
    "tokenize      25.0  25.0 %      5    5.000",
    "",
  ]);
});
