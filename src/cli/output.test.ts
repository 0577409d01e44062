import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { requireWritable } from "./output.ts";

test("finding out whether a file can be written leaves nothing behind and changes nothing", () => {
  const directory = temporaryDirectory("output");
  const [absent, present] = [join(directory, "absent"), join(directory, "present")];
  writeFileSync(present, "before");
  for (const path of [absent, present, "/dev/null"]) requireWritable(path);
  expect(existsSync(absent)).toBe(false);
  expect(readFileSync(present, "utf8")).toBe("before");
});

test.if(existsSync("/proc"))("what the system does not let be made is told in words", () => {
  expect(() => requireWritable("/proc/x")).toThrow(
    "--output /proc/x cannot be written: no file can be made there",
  );
});
