import { expect, test } from "bun:test";
import type { MachO } from "./mach-o.ts";
import { foreignSymbols, macosSymbols, stubOf } from "./macos-symbols.ts";

const LIBCXX = "/usr/lib/libc++.1.dylib";
const LIBMLX = "@rpath/libmlx.dylib";

test("every symbol in the list has a library and a program that shows it", () => {
  expect(macosSymbols.length).toBeGreaterThan(900);
  for (const { library, symbol, witness } of macosSymbols) {
    expect(library).toMatch(/^\/usr\/lib\/lib(c\+\+\.1|System\.B)\.dylib$/);
    expect(symbol).toMatch(/^\S+$/);
    expect(witness).toMatch(/ of \S+ \d\S*, for macOS 1[1-4]\.\d$/);
  }
});

test("a stub has the library's symbols and no others", () => {
  const stub = stubOf(LIBCXX);
  expect(stub).toContain(`install-name: '${LIBCXX}'`);
  expect(stub).toContain("'__ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEED1Ev'");
  expect(stub).not.toContain("'_malloc'");
});

function library(exports: string[], imports: [library: string, symbol: string][]): MachO {
  return {
    fileType: "dylib",
    oldestMacos: "14.0",
    installName: undefined,
    libraries: [],
    rpaths: [],
    segments: [],
    stringsOffset: 0,
    exports,
    imports: imports.map(([from, symbol]) => ({ library: from, symbol, isWeak: false })),
  };
}

test("what neither libmlx nor the list has is foreign, also when another library has it", () => {
  const libmlx = library(["_matmul"], []);
  const own = library(
    [],
    [
      [LIBMLX, "_matmul"],
      [LIBMLX, "_malloc"],
      ["/usr/lib/libSystem.B.dylib", "_malloc"],
      [LIBCXX, "_from_the_future"],
    ],
  );
  expect(foreignSymbols(own, libmlx)).toEqual([`${LIBMLX} _malloc`, `${LIBCXX} _from_the_future`]);
});
