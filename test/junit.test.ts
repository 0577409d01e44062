import { expect, test } from "bun:test";
import { junitTotals } from "./junit.ts";

test("passed is what neither failed nor was skipped", () => {
  const xml =
    '<?xml version="1.0"?>\n<testsuites name="bun test" tests="12" assertions="40" failures="2" skipped="3" time="1.5">' +
    '<testsuite name="a" tests="1" failures="9" skipped="9"/></testsuites>';
  expect(junitTotals(xml)).toEqual({ passed: 7, failed: 2, skipped: 3 });
});

test("a report without totals is an error, not zero tests", () => {
  expect(() => junitTotals("<testsuites></testsuites>")).toThrow("no failures");
  expect(() => junitTotals("")).toThrow("no <testsuites>");
});
