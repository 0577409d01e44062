import { expect, test } from "bun:test";
import { nearest } from "./nearest.ts";

test.each([
  ["sevre", "serve"],
  ["Doctor", "doctor"],
  ["hlep", "help"],
])("%s was meant to be %s", (word, meant) => {
  expect(nearest(word, ["serve", "doctor", "help", "version"])).toBe(meant);
});

test("nothing is near a word that shares nothing", () => {
  expect(nearest("xyzzyxyzzy", ["serve", "doctor"])).toBeUndefined();
});
