import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EmbeddedFile } from "./executable.ts";
import { extractOnce } from "./extraction.ts";
import { LibraryError } from "./library-error.ts";

let root: string;
let cache: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mlxcel-extraction-"));
  cache = join(root, "cache", "mlxcel");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function embedded(name: string, content: string): EmbeddedFile {
  const path = join(root, name.replaceAll("/", "-"));
  writeFileSync(path, Bun.zstdCompressSync(content));
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { name, path, bytes: content.length, sha256 };
}

function nativeSet() {
  return {
    nativeSet: "native-1",
    files: [embedded("libx.so", "x"), embedded("a/lib/y.node", "yy")],
  };
}

/** The id of a process that has ended. */
function endedPid(): number {
  return Bun.spawnSync(["true"]).pid;
}

describe("the native set", () => {
  test("is unpacked into a folder of its own, in its layout, ready to be opened", () => {
    const folder = extractOnce(nativeSet(), cache);
    expect(folder).toBe(join(cache, "native-1"));
    expect(readFileSync(join(folder, "libx.so"), "utf8")).toBe("x");
    expect(readFileSync(join(folder, "a/lib/y.node"), "utf8")).toBe("yy");
    expect(statSync(join(folder, "libx.so")).mode & 0o777).toBe(0o755);
    expect(readdirSync(cache)).toEqual(["native-1"]);
  });

  test("is not unpacked again", () => {
    const set = nativeSet();
    const folder = extractOnce(set, cache);
    for (const { path } of set.files) rmSync(path);
    expect(extractOnce(set, cache)).toBe(folder);
  });

  test("is unpacked again when a file is missing or was cut", () => {
    const set = nativeSet();
    const folder = extractOnce(set, cache);
    for (const spoil of [
      () => rmSync(join(folder, "a"), { recursive: true }),
      () => truncateSync(join(folder, "libx.so")),
    ]) {
      spoil();
      extractOnce(set, cache);
      expect(readFileSync(join(folder, "libx.so"), "utf8")).toBe("x");
      expect(readFileSync(join(folder, "a/lib/y.node"), "utf8")).toBe("yy");
      expect(readdirSync(cache)).toEqual(["native-1"]);
    }
  });

  test("takes the place of what killed starts left, and leaves running ones alone", () => {
    const running = `native-1.tmp.${process.ppid}.0`;
    const left = [`native-1.tmp.${endedPid()}.0`, `native-0.tmp.${endedPid()}.3.old`];
    for (const name of [running, ...left, "models"]) {
      mkdirSync(join(cache, name), { recursive: true });
      writeFileSync(join(cache, name, "part"), "");
    }
    extractOnce(nativeSet(), cache);
    expect(readdirSync(cache).sort()).toEqual(["models", "native-1", running]);
  });
});

describe("one line says what is wrong", () => {
  test("with an executable whose content has changed", () => {
    const set = nativeSet();
    const files = set.files.map((file) => ({ ...file, sha256: "0".repeat(64) }));
    expect(() => extractOnce({ ...set, files }, cache)).toThrow(
      new LibraryError("this executable is damaged (libx.so has another sha256): fetch it again"),
    );
    expect(readdirSync(cache)).toEqual([]);
  });

  test("with a cache that cannot be one, and how to choose another", () => {
    writeFileSync(join(root, "cache"), "");
    expect(() => extractOnce(nativeSet(), cache)).toThrow(
      new LibraryError(
        `the native libraries cannot be unpacked into ${cache} (ENOTDIR); ` +
          "set MLXCEL_CACHE_DIR to a directory that can be written",
      ),
    );
  });
});
