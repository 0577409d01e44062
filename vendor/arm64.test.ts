import { expect, test } from "bun:test";
import { emulated } from "./arm64.ts";

test("the emulated processor has no SVE, and the program finds the libraries of its own system", () => {
  const command = emulated("/cache/bun");
  expect(command.join(" ")).toMatch(/^qemu-aarch64 .*\bsve=off\b.* -L \/usr\/aarch64-linux-gnu /);
  expect(command.at(-1)).toBe("/cache/bun");
});
