import { expect, test } from "bun:test";
import { checkDecoding } from "./decoding.ts";

test("images can be decoded on this machine", async () => {
  expect(await checkDecoding()).toMatch(/^\d+\.\d+\.\d+$/);
});
