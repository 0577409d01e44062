import { expect, test } from "bun:test";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { cacheFolder } from "./cache-folder.ts";

const HOME = "/home/ada";

test("the cache lies where the system keeps caches", () => {
  expect(cacheFolder({ HOME }, "darwin")).toBe("/home/ada/Library/Caches/mlxcel");
  expect(cacheFolder({ HOME }, "linux")).toBe("/home/ada/.cache/mlxcel");
  expect(cacheFolder({ HOME, XDG_CACHE_HOME: "/fast" }, "linux")).toBe("/fast/mlxcel");
});

test("MLXCEL_CACHE_DIR beats the system, from the folder that the user stands in", () => {
  for (const platform of ["darwin", "linux"] as const) {
    expect(cacheFolder({ HOME, MLXCEL_CACHE_DIR: "here" }, platform)).toBe(resolve("here"));
  }
});

test("without HOME it is the home directory of the account", () => {
  expect(cacheFolder({}, "linux")).toBe(`${homedir()}/.cache/mlxcel`);
});
