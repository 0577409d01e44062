import { expect, test } from "bun:test";
import { junitFailures, junitTotals } from "./junit.ts";

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

test("failed tests are listed with their file, groups from the outside in, and first line", () => {
  const xml =
    '<testcase name="fine" classname="" file="a.test.ts" />\n' +
    '<testcase name="is &quot;x&quot;" classname="inner &gt; outer" file="a.test.ts">\n' +
    '  <failure type="E" message="1 &lt; 2&#10;more">text</failure>\n</testcase>' +
    '<testcase name="slow" classname="" file="b.test.ts">\n<failure type="TimeoutError" message="test timed out" />';
  expect(junitFailures(xml)).toEqual([
    'a.test.ts > outer > inner > is "x": 1 < 2',
    "b.test.ts > slow: test timed out",
  ]);
});
