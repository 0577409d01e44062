/** What the system's libraries of macOS 14 are known to have: the list in macos-symbols.txt. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { MachO } from "./mach-o.ts";
import { vendorFolder } from "./pinned.ts";

/** A symbol of the system, and the program that shows that macOS 14 has it: it takes the symbol and runs there. */
interface SystemSymbol {
  readonly library: string;
  readonly symbol: string;
  readonly witness: string;
}

function readList(): SystemSymbol[] {
  const lines = readFileSync(join(vendorFolder, "macos-symbols.txt"), "utf8").split("\n");
  let witness = "";
  return lines.flatMap((line) => {
    if (line.startsWith("#")) witness = line.slice(2);
    const [library, symbol] = line.split(" ");
    return library === "" || library === "#" || library === undefined || symbol === undefined
      ? []
      : [{ library, symbol, witness }];
  });
}

export const macosSymbols: readonly SystemSymbol[] = readList();

/** A library of the system as the linker wants it when the library itself is not there. */
export function stubOf(library: string): string {
  const names = macosSymbols.filter((each) => each.library === library).map(({ symbol }) => symbol);
  return [
    "--- !tapi-tbd",
    "tbd-version: 4",
    "targets: [ arm64-macos ]",
    `install-name: '${library}'`,
    "exports:",
    "  - targets: [ arm64-macos ]",
    `    symbols: [ ${names.map((name) => `'${name}'`).join(", ")} ]`,
    "...\n",
  ].join("\n");
}

const LIBMLX = "@rpath/libmlx.dylib";

/** What a library takes from elsewhere than from libmlx and from the known symbols of the system. */
export function foreignSymbols(library: MachO, libmlx: MachO): string[] {
  const known = new Set([
    ...libmlx.exports.map((symbol) => `${LIBMLX} ${symbol}`),
    ...macosSymbols.map((each) => `${each.library} ${each.symbol}`),
  ]);
  return library.imports
    .map((each) => `${each.library ?? "any library"} ${each.symbol}`)
    .filter((name) => !known.has(name));
}
