import { isUtf8 } from "node:buffer";
import { reasonOf } from "../native/thrown.ts";
import { readFlagBytes } from "./flag-file.ts";
import { UsageError } from "./usage-error.ts";

const LINE_FEED = 0x0a;

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
 * The items of a file, one per line; a last line without anything is none, and blank lines between JSON lines count
 * for nothing.
 * @throws UsageError one line, naming the file and the line
 */
export async function readItems({ path, jsonl }: TextFile): Promise<FileItems> {
  const name = path === "-" ? "stdin" : path;
  const at = (line: number) => `${name} line ${line + 1}`;
  const bytes = path === "-" ? await Bun.stdin.bytes() : readFlagBytes("--file", path);
  const lines = decoded(bytes, at).split(/\r?\n/);
  // the line end that closes the last text, and an empty line behind it
  for (let i = 0; i < 2 && lines.at(-1) === ""; i++) lines.pop();
  if (lines.length === 0) throw new UsageError(`${name} is empty; write one text per line`);
  const isJson = jsonl || /\.(jsonl|ndjson)$/i.test(path);
  const numbers = lines.flatMap((line, i) => (isJson && line.trim() === "" ? [] : [i]));
  const items = numbers.map((i) => {
    const line = lines[i] ?? "";
    const item = isJson ? jsonItem(line, at(i)) : line;
    if (textOf(item) !== "") return item;
    throw new UsageError(`${at(i)} is empty; delete it, for every line is a text`);
  });
  return { items, lineOf: (item) => at(numbers[item] ?? 0) };
}

/** Without a byte order mark. A text that is repaired would silently get another vector. */
function decoded(bytes: Uint8Array, at: (line: number) => string): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes);
  throw new UsageError(`${at(firstInvalidLine(bytes))} is not valid UTF-8; save the file as UTF-8`);
}

/** No character holds the byte of a line end, so a line is valid or not by itself. */
function firstInvalidLine(bytes: Uint8Array): number {
  let line = 0;
  let begin = 0;
  for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, begin)) {
    if (!isUtf8(bytes.subarray(begin, end))) break;
    line++;
    begin = end + 1;
  }
  return line;
}

function jsonItem(line: string, at: string): FileItem {
  const value = parsedJson(line, at);
  if (typeof value === "string" || hasText(value)) return value;
  throw new UsageError(`${at} is no JSON string and no object with text`);
}

function hasText(value: unknown): value is { readonly text: string } {
  const isObject = typeof value === "object" && value !== null && "text" in value;
  return isObject && typeof value.text === "string";
}

function parsedJson(line: string, at: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new UsageError(`${at} is not valid JSON: ${reasonOf(error)}`);
  }
}
