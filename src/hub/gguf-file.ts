/** Models in one GGUF file: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Says that a file is GGUF. */
const EXTENSION = /\.gguf$/i;

/**
 * The GGUF file that a path leads to: the file itself, or the only one in a directory without a config.json or
 * modules.json. undefined: it is, or should be, a directory of other files.
 *
 * @throws Error one line: a directory that holds several
 */
export function ggufFileAt(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  if (!statSync(path).isDirectory()) return EXTENSION.test(path) ? path : undefined;
  const names = readdirSync(path);
  if (names.includes("config.json") || names.includes("modules.json")) return undefined;
  const [file, ...others] = names.filter((name) => EXTENSION.test(name)).sort();
  if (file === undefined || others.length === 0) return file && join(path, file);
  throw new Error(`${path} holds several GGUF files; name one of ${[file, ...others].join(", ")}`);
}
