import { expect, test } from "bun:test";
import { runTests } from "./bun-test.ts";

const options = { name: "bun-test", timeoutMs: 10_000 };

test("a run in which a test passed tells how many did", async () => {
  const args = ["./test/junit.test.ts"];
  const { passed, failures } = await runTests({ ...options, args });
  expect(passed).toBeGreaterThan(0);
  expect(failures).toEqual([]);
});

test.each([
  ["no test has the name", ["./test/junit.test.ts", "--test-name-pattern=no test is called so"]],
  ["no file has the path", ["./test/nowhere/"]],
])("a run is a failure when %s", async (_, args) => {
  const { passed, failures } = await runTests({ ...options, args });
  expect(passed).toBe(0);
  expect(failures).toEqual([expect.stringMatching(/^bun-test: no test ran: /)]);
});

test("the program that runs the tests can be another one, and must not fail in silence", async () => {
  const { failures } = await runTests({ ...options, args: [], bun: ["sh", "-c", "exit 7"] });
  expect(failures).toEqual([
    "bun-test: no test ran: bun test ended with exit code 7 after no file",
  ]);
});
