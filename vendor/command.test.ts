import { expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { CommandError, run } from "./command.ts";
import { SetupError } from "./setup-error.ts";

const log = "command-test";

async function failureOf(script: string): Promise<unknown> {
  return run(["sh", "-c", script], { log }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

test("a command gives the lines of both its outputs, also one without a newline", async () => {
  const lines = await run(["sh", "-c", "echo one; echo two >&2; printf three"], { log });
  expect(lines.toSorted()).toEqual(["one", "three", "two"]);
});

test("a command that fails keeps its output in a log and its last line as the message", async () => {
  const error = await failureOf("echo first; echo last; exit 3");
  if (!(error instanceof CommandError)) throw new Error(`not a CommandError: ${error}`);
  expect(error.message).toBe("last");
  expect(existsSync(error.log)).toBe(true);
  rmSync(error.log);
});

test.each([
  "[Errno 28] No space left on device",
  "fatal error: error writing to x.s: No space left on device",
  "npm error code ENOSPC",
])("a full disk is told as such when a command says: %s", async (line) => {
  const error = await failureOf(`echo '${line}'; exit 1`);
  expect(error).toBeInstanceOf(SetupError);
  expect(String(error)).toContain("the disk is full");
});
