import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../test/fixtures/fixtures.ts";
import { compressed, librariesIn, setName, sharpFiles } from "./payload.ts";
import { vendorFolder } from "./pinned.ts";

const folder = temporaryDirectory("payload");
writeFileSync(join(folder, "libb.so"), "b");
writeFileSync(join(folder, "liba.so.1"), "a");
writeFileSync(join(folder, ".stamp"), "");
mkdirSync(join(folder, "include"));

test("a native set is the files of its folder, without stamps and folders", () => {
  expect(librariesIn(folder).map(({ name }) => name)).toEqual(["liba.so.1", "libb.so"]);
});

test("what is compressed comes out again, with the size and the hash that are told", async () => {
  const files = await compressed(librariesIn(folder));
  for (const { name, path, bytes, sha256 } of files) {
    const content = Bun.zstdDecompressSync(readFileSync(path));
    expect(Buffer.from(content).equals(readFileSync(join(folder, name)))).toBe(true);
    expect(content).toHaveLength(bytes);
    expect(new Bun.CryptoHasher("sha256").update(content).digest("hex")).toBe(sha256);
  }
});

test("the name of a set changes with the name or the content of a file", async () => {
  const [first, second] = await compressed(librariesIn(folder));
  if (first === undefined || second === undefined) throw new Error("two files were compressed");
  const names = [
    [first, second],
    [{ ...first, name: "other" }, second],
    [{ ...first, sha256: second.sha256 }, second],
  ].map(setName);
  expect(new Set(names).size).toBe(3);
  expect(names[0]).toMatch(/^native-[0-9a-f]{16}$/);
});

test("sharp's addon and libvips keep their places to each other", () => {
  const names = sharpFiles(
    join(vendorFolder, "../node_modules"),
    `${process.platform}-${process.arch}`,
  );
  expect(names.map(({ name }) => name.replace(/[^/]*$/, ""))).toEqual([
    `sharp-${process.platform}-${process.arch}/lib/`,
    `sharp-libvips-${process.platform}-${process.arch}/lib/`,
  ]);
});
