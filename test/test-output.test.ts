import { expect, test } from "bun:test";
import { TestOutput } from "./test-output.ts";

function run(...lines: string[]): { text: string; output: TestOutput } {
  let text = "";
  const output = new TestOutput((part) => {
    text += part;
  });
  lines.forEach((line) => output.line(line));
  output.end();
  return { text, output };
}

test("a file that passes is one line, whatever follows it", () => {
  expect(run("a/b.test.ts:", "(pass) one [1ms]", "(pass) two", "", "c.test.ts:", "").text).toBe(
    "a/b.test.ts: 2 passed\nc.test.ts: 0 passed\n",
  );
  expect(run("a.test.ts:", "(pass) one", "", " 1 pass", " 0 fail").text).toBe(
    "a.test.ts: 1 passed\n 1 pass\n 0 fail\n",
  );
  expect(run("a.test.ts:", "(pass) one", "", "2 tests failed:").text).toBe(
    "a.test.ts: 1 passed\n2 tests failed:\n",
  );
});

test("all that is said about a failure is kept", () => {
  const { text } = run("a.test.ts:", "(pass) one", "error: no", "(fail) two", "", "(pass) three");
  expect(text).toBe("a.test.ts:\nerror: no\n(fail) two\n\n");
});

test("errors outside of tests are told with their file", () => {
  const { output } = run(
    ...["a.test.ts:", "error: inside of a test", "(fail) one", "b.test.ts:"],
    ...["# Unhandled error between tests", "------", "3 | throw new TypeError(text)"],
    ...["TypeError: first", "      at b.test.ts:3:1", "error: second", "------"],
    ...["c.test.ts:", "# Unhandled error between tests", "error: Cannot find module './d.ts'"],
  );
  expect(output.outside).toEqual([
    "b.test.ts: outside of a test: first",
    "c.test.ts: outside of a test: Cannot find module './d.ts'",
  ]);
});
