import { existsSync } from "node:fs";
import { reasonOf } from "../native/thrown.ts";
import { readFlagFile } from "./flag-file.ts";
import { UsageError } from "./usage-error.ts";

interface TextFile {
  /** `-`: stdin. */
  readonly path: string;
  /** JSON lines whatever the name says. */
  readonly jsonl: boolean;
}

/** A line of a file: a text, or an object of a JSON file that holds one beside other keys. */
export type FileItem = string | { readonly text: string };

export function textOf(item: FileItem): string {
  return typeof item === "string" ? item : item.text;
}

interface FileItems {
  readonly items: readonly FileItem[];
  /** Where an item stands: `texts.txt line 3`. */
  lineOf(item: number): string;
}

/**
 * The items of a file, one per line; a line end at the very end starts no further one, and blank lines between JSON
 * lines count for nothing.
 * @throws Error one line, naming the file and the line
 */
export async function readItems({ path, jsonl }: TextFile): Promise<FileItems> {
  const name = path === "-" ? "stdin" : path;
  if (path !== "-" && !existsSync(path)) throw new UsageError(`--file ${path}: no such file`);
  const content = path === "-" ? await Bun.stdin.text() : readFlagFile("--file", path);
  const lines = content.replace(/^\ufeff/, "").split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  if (lines.length === 0) throw new Error(`${name} is empty; write one text per line`);
  const isJson = jsonl || /\.(jsonl|ndjson)$/i.test(path);
  const at = (line: number) => `${name} line ${line + 1}`;
  const numbers = lines.flatMap((line, i) => (isJson && line.trim() === "" ? [] : [i]));
  const items = numbers.map((i) => {
    const line = lines[i] ?? "";
    const item = isJson ? jsonItem(line, at(i)) : line;
    if (textOf(item).trim() !== "") return item;
    throw new Error(`${at(i)} is blank; delete it, for every line is a text`);
  });
  return { items, lineOf: (item) => at(numbers[item] ?? 0) };
}

function jsonItem(line: string, at: string): FileItem {
  const value = parsedJson(line, at);
  if (typeof value === "string" || hasText(value)) return value;
  throw new Error(`${at} is no JSON string and no object with text`);
}

function hasText(value: unknown): value is { readonly text: string } {
  const isObject = typeof value === "object" && value !== null && "text" in value;
  return isObject && typeof value.text === "string";
}

function parsedJson(line: string, at: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new Error(`${at} is not valid JSON: ${reasonOf(error)}`);
  }
}
