import { existsSync } from "node:fs";
import { readFlagFile } from "./flag-file.ts";
import { UsageError } from "./usage-error.ts";

export interface TextFile {
  /** `-`: stdin. */
  readonly path: string;
  /** JSON lines whatever the name says. */
  readonly jsonl: boolean;
}

/**
 * The texts of a file, one per line; a line end at the very end starts no further text.
 * @throws Error one line, naming the file and the line
 */
export async function readTexts({ path, jsonl }: TextFile): Promise<string[]> {
  const name = path === "-" ? "stdin" : path;
  if (path !== "-" && !existsSync(path)) throw new UsageError(`--file ${path}: no such file`);
  const content = path === "-" ? await Bun.stdin.text() : readFlagFile("--file", path);
  const lines = content.replace(/^\ufeff/, "").split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  if (lines.length === 0) throw new Error(`${name} is empty; write one text per line`);
  const isJson = jsonl || /\.(jsonl|ndjson)$/i.test(path);
  return lines.map((line, i) => {
    const text = isJson ? textOfJson(line) : line;
    if (text === undefined) {
      throw new Error(`${name} line ${i + 1} is no JSON string and no object with text`);
    }
    if (text.trim() === "") throw new Error(`${name} line ${i + 1} is blank; every line is a text`);
    return text;
  });
}

function textOfJson(line: string): string | undefined {
  const value = parsed(line);
  if (typeof value === "string") return value;
  const isObject = typeof value === "object" && value !== null && "text" in value;
  return isObject && typeof value.text === "string" ? value.text : undefined;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // reported with its line number
  }
}
