import { Glob } from "bun";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { SymbolTable } from "./signature.ts";
import { array } from "./symbols/array.ts";
import { device } from "./symbols/device.ts";
import { error } from "./symbols/error.ts";
import { fast } from "./symbols/fast.ts";
import { io } from "./symbols/io.ts";
import { kernels } from "./symbols/kernels.ts";
import { map } from "./symbols/map.ts";
import { memory } from "./symbols/memory.ts";
import { metal } from "./symbols/metal.ts";
import { mlxcel } from "./symbols/mlxcel.ts";
import { ops } from "./symbols/ops.ts";
import { stream } from "./symbols/stream.ts";
import { string } from "./symbols/string.ts";
import { transforms } from "./symbols/transforms.ts";
import { vector } from "./symbols/vector.ts";
import { version } from "./symbols/version.ts";

const tables: Readonly<Record<string, SymbolTable>> = {
  array,
  device,
  error,
  fast,
  io,
  map,
  memory,
  metal,
  ops,
  stream,
  string,
  transforms,
  vector,
  version,
};

const headers = join(
  import.meta.dir,
  `../vendor/lib/${process.platform}-${process.arch}/include/mlx/c`,
);

interface Declaration {
  readonly returns: string;
  readonly args: readonly string[];
}

/** `const mlx_array a` -> `mlx_array`, `const int* shape` -> `int*`, `void (*dtor)(void*)` -> `void(*)(void*)`. */
function typeOf(parameter: string): string {
  const functionPointer = /^(\w+) \(\*\w*\)\((.*)\)$/.exec(parameter);
  if (functionPointer) return `${functionPointer[1]}(*)(${functionPointer[2]})`;
  return parameter
    .replaceAll(/\bconst\b/g, "")
    .replaceAll(/ ?\*/g, "* ")
    .trim()
    .replace(/\s+\w+$/, "")
    .replaceAll(/\s+/g, "");
}

function argumentTypes(parameters: string): string[] {
  const list = parameters.trim();
  if (list === "void" || list === "") return [];
  return list.split(/,(?![^(]*\))/).map((parameter) => typeOf(parameter.trim()));
}

function declarations(header: string): Map<string, Declaration> {
  const code = header
    .replaceAll(/\/\*[\s\S]*?\*\//g, " ")
    .replaceAll(/^\s*#.*$/gm, " ")
    .replaceAll(/\s+/g, " ");
  const found = new Map<string, Declaration>();
  for (const [, type, name, parameters] of code.matchAll(
    /(?<=^ ?|[;{}] ?)((?:const )?\w+ ?\*?) ?(mlx_\w+)\(((?:[^();]|\([^)]*\))*)\);/g,
  )) {
    found.set(name!, {
      returns: typeOf(`${type} result`),
      args: argumentTypes(parameters!),
    });
  }
  return found;
}

describe("symbol tables agree with the pinned headers", () => {
  for (const [name, table] of Object.entries(tables)) {
    test(`mlx/c/${name}.h`, async () => {
      const declared = declarations(await Bun.file(join(headers, `${name}.h`)).text());
      expect(Object.keys(table)).not.toBeEmpty();
      for (const [symbol, { args, returns }] of Object.entries(table)) {
        expect({ symbol, args, returns }).toEqual({ symbol, ...declared.get(symbol) } as never);
      }
    });
  }

  test("vendor/native defines every addition of our own build", async () => {
    const native = join(import.meta.dir, "../vendor/native");
    const files = await Array.fromAsync(new Glob("**/*.{c,cpp}").scan(native));
    const texts = await Promise.all(files.map((file) => Bun.file(join(native, file)).text()));
    for (const [symbol, { args, returns }] of Object.entries({ ...mlxcel, ...kernels })) {
      const found = new RegExp(`^(.*?)\\b${symbol}\\(([^)]*)\\) \\{`, "m").exec(texts.join("\n"));
      expect({ symbol, returns, args }).toEqual({
        symbol,
        returns: typeOf(`${found?.[1]} result`),
        args: argumentTypes(found?.[2] ?? ""),
      } as never);
    }
  });

  test("the header reader finds every function that the headers declare", async () => {
    const text = await Bun.file(join(headers, "ops.h")).text();
    expect(declarations(text).size).toBe(text.match(/\bmlx_\w+\(/g)!.length);
  });

  test("every table file has its header", async () => {
    const files = await Array.fromAsync(new Glob("*.ts").scan(join(import.meta.dir, "symbols")));
    expect(files.map((file) => file.replace(".ts", "")).sort()).toEqual(
      [...Object.keys(tables), "kernels", "mlxcel"].sort(),
    );
  });
});
