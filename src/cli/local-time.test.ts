import { expect, test } from "bun:test";
import { localTime } from "./local-time.ts";

test("times are written as ISO 8601 orders them, in local time", () => {
  expect(localTime(new Date(2026, 10, 9, 22, 8, 17))).toBe("2026-11-09 22:08");
});
