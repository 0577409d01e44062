/** What can be told of the executable for a Mac without one: its files are read, none of them is run. */
import { beforeAll, describe, expect, test } from "bun:test";
import { globSync, readFileSync, realpathSync } from "node:fs";
import { join, posix, resolve } from "node:path";
import { checkSignature, type MachO, readMachO } from "../../vendor/mach-o.ts";
import { foreignSymbols, macosSymbols } from "../../vendor/macos-symbols.ts";
import { cacheFolder } from "../../vendor/pinned.ts";
import { isAtLeast } from "../../vendor/supported-system.mjs";
import { partsFor } from "../../vendor/targets.ts";
import { temporaryDirectory } from "../fixtures/fixtures.ts";
import { build, builtMacExecutable, MAC_EXECUTABLE } from "./user.ts";

const ROOT = resolve(import.meta.dir, "../..");
const BUILD_MS = 20 * 60_000;
const MOST_BYTES = 160e6;
const READ_ONLY = 0x10;

let executable: Buffer;
let runtime: MachO;
/** The native files by their names in the set. */
const native = new Map<string, Buffer>();
beforeAll(async () => {
  await builtMacExecutable();
  executable = readFileSync(MAC_EXECUTABLE);
  const parts = await partsFor("darwin-arm64");
  for (const { name, path } of parts.files) native.set(name, readFileSync(path));
  runtime = readMachO(readFileSync(parts.runtime));
}, BUILD_MS);

function nativeFile(pattern: RegExp): Buffer {
  const [, content] = [...native].find(([name]) => pattern.test(name)) ?? [];
  if (content === undefined) throw new Error(`no file in the set is called ${pattern}`);
  return content;
}

const libmlxc = () => readMachO(nativeFile(/^libmlxc\.dylib$/));
const libmlx = () => readMachO(nativeFile(/^libmlx\.dylib$/));

/** All code: the executable and what it opens. */
function code(): [string, Buffer][] {
  return [["mlxcel", executable], ...[...native].filter(([name]) => !name.endsWith(".metallib"))];
}

describe("the executable", () => {
  test("carries the whole native set, and nothing that is not needed", () => {
    const text = executable.toString("latin1");
    const listed = [
      ...text.matchAll(/name:"([^"]+)",path:"",bytes:(\d+),sha256:"([0-9a-f]{64})"/g),
    ];
    const names = [...new Set(listed.map(([, name]) => name))].sort();
    expect(names).toEqual([
      "libmlx.dylib",
      "libmlxc.dylib",
      // MLX looks for it beside its library.
      "mlx.metallib",
      expect.stringMatching(/^sharp-darwin-arm64\/lib\/sharp-darwin-arm64-[\d.]+\.node$/),
      expect.stringMatching(/^sharp-libvips-darwin-arm64\/lib\/libvips-cpp\.[\d.]+\.dylib$/),
    ]);
    for (const [, name = "", bytes, sha256] of listed) {
      const compressed = readFileSync(join(cacheFolder, "payload", `${sha256}.9.zst`));
      expect(executable.includes(compressed), name).toBe(true);
      const content = Bun.zstdDecompressSync(compressed);
      expect(content.length).toBe(Number(bytes));
      expect(native.get(name)?.equals(content), name).toBe(true);
    }
  });

  test("is smaller than 160 MB", () => {
    expect(executable.length).toBeLessThan(MOST_BYTES);
  });

  test("has the same bytes when it is built again", async () => {
    const again = join(temporaryDirectory("mac"), "mlxcel-again");
    await build("--target", "darwin-arm64", "--out", again);
    expect(readFileSync(again).equals(executable)).toBe(true);
  });
});

describe("a Mac will find", () => {
  test("code for arm64, each file of its kind", () => {
    const kinds = Object.fromEntries(
      code().map(([name, file]) => [name, readMachO(file).fileType]),
    );
    expect(kinds["mlxcel"]).toBe("executable");
    expect(kinds["libmlxc.dylib"]).toBe("dylib");
    expect(Object.keys(kinds)).toHaveLength(5);
  });

  test("code for macOS 14 or older systems", () => {
    expect(readMachO(executable).oldestMacos).toBe("13.0");
    expect(libmlxc().oldestMacos).toBe("14.0");
    expect(libmlx().oldestMacos).toBe("14.0");
    for (const [name, file] of code()) {
      expect(isAtLeast("14.0", readMachO(file).oldestMacos ?? "none"), name).toBe(true);
    }
  });

  test("signatures that fit every page", () => {
    for (const [name, file] of code()) {
      expect(checkSignature(file), name).toMatchObject({ badPages: 0, isComplete: true });
    }
    const changed = Buffer.from(nativeFile(/^libmlxc\.dylib$/));
    changed.writeUInt8(changed.readUInt8(5000) ^ 1, 5000);
    expect(checkSignature(changed).badPages).toBe(1);
  });

  test("tables where the newest macOS wants them, and constants that cannot be written", () => {
    for (const [name, file] of code()) {
      const { stringsOffset, segments } = readMachO(file);
      expect(stringsOffset % 8, name).toBe(0);
      const constants = segments.find((segment) => segment.name === "__DATA_CONST");
      expect((constants?.flags ?? 0) & READ_ONLY, name).toBe(READ_ONLY);
    }
  });

  test("each library named once", () => {
    for (const [name, file] of code()) {
      const { libraries } = readMachO(file);
      expect([...new Set(libraries)], name).toEqual([...libraries]);
    }
  });

  test("no path of the machine that built it", () => {
    for (const [name, file] of code()) {
      for (const folder of [ROOT, realpathSync(cacheFolder), "mac-build."]) {
        expect(file.includes(folder), `${name}: ${folder}`).toBe(false);
      }
    }
  });

  test("libvips where sharp's addon looks for it", () => {
    const addon = [...native.keys()].find((name) => name.endsWith(".node")) ?? "";
    const { rpaths, libraries } = readMachO(nativeFile(/\.node$/));
    const [wanted = ""] = libraries.filter((library) => library.includes("libvips"));
    const places = rpaths.map((rpath) =>
      posix.join(rpath.replace("@loader_path", posix.dirname(addon)), posix.basename(wanted)),
    );
    expect(places.filter((place) => native.has(place))).toHaveLength(1);
  });
});

describe("libmlxc", () => {
  test("is found by its name and finds libmlx beside itself", () => {
    const { installName, rpaths, libraries } = libmlxc();
    expect(installName).toBe("@rpath/libmlxc.dylib");
    expect(rpaths).toEqual(["@loader_path"]);
    expect([...libraries].sort()).toEqual([
      "/usr/lib/libSystem.B.dylib",
      "/usr/lib/libc++.1.dylib",
      "@rpath/libmlx.dylib",
    ]);
    expect(libmlx().installName).toBe("@rpath/libmlx.dylib");
  });

  test("takes nothing but what libmlx exports and macOS 14 is known to have", () => {
    expect(libmlxc().imports.length).toBeGreaterThan(400);
    expect(foreignSymbols(libmlxc(), libmlx())).toEqual([]);
    const without = { ...libmlx(), exports: libmlx().exports.slice(0, -100) };
    expect(foreignSymbols(libmlxc(), without)).not.toEqual([]);
  });

  test("exports every symbol that the program calls, and no kernels", async () => {
    const exported = new Set(libmlxc().exports);
    for (const file of globSync(join(ROOT, "ffi/symbols/*.ts"))) {
      const tables: Readonly<Record<string, object>> = await import(file);
      for (const symbol of Object.values(tables).flatMap(Object.keys)) {
        expect(exported.has(`_${symbol}`), symbol).toBe(!file.endsWith("/kernels.ts"));
      }
    }
  });

  test("exports its interface only", () => {
    const others = libmlxc().exports.filter((symbol) => !/^_?_mlx(cel)?_/.test(symbol));
    // The linker's own.
    expect(others.sort()).toEqual(["___dso_handle", "__mh_dylib_header"]);
  });
});

describe("the list of what macOS 14 has", () => {
  test.each(["libmlx.dylib", "bun"])("names what %s takes, and only that", (witness) => {
    const file = witness === "bun" ? runtime : libmlx();
    expect(isAtLeast("14.0", file.oldestMacos ?? "none")).toBe(true);
    const taken = new Set(
      file.imports.flatMap((each) => (each.isWeak ? [] : [`${each.library} ${each.symbol}`])),
    );
    const claimed = macosSymbols.filter((each) => each.witness.startsWith(`${witness} of `));
    expect(claimed.length).toBeGreaterThan(300);
    const wrong = claimed.filter((each) => !taken.has(`${each.library} ${each.symbol}`));
    expect(wrong).toEqual([]);
  });
});
