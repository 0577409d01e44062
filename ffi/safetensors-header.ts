import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { MlxError } from "./error.ts";

/** Names and metadata of a safetensors file; https://github.com/huggingface/safetensors#format. */
export interface SafetensorsHeader {
  readonly names: readonly string[];
  readonly metadata: Map<string, string>;
}

const LENGTH_BYTES = 8;
const MAX_HEADER_BYTES = 100_000_000;

/**
 * Reads the header and makes sure that the file holds every byte that it promises: mlx reads tensors later, on a
 * thread of its own, where a short file would end the process. Throws MlxError naming the file.
 */
export function readHeader(path: string): SafetensorsHeader {
  const refuse = (reason: string): MlxError =>
    new MlxError("loadSafetensors", `${path}: ${reason}`);
  const file = openFile(path, refuse);
  try {
    const fileBytes = fstatSync(file).size;
    const prefix = new DataView(new ArrayBuffer(LENGTH_BYTES));
    if (readSync(file, prefix, 0, LENGTH_BYTES, 0) < LENGTH_BYTES) {
      throw refuse("shorter than a safetensors header");
    }
    const headerBytes = Number(prefix.getBigUint64(0, true));
    if (headerBytes > MAX_HEADER_BYTES || LENGTH_BYTES + headerBytes > fileBytes) {
      throw refuse("the header is longer than the file: not a safetensors file, or cut short");
    }
    const text = new Uint8Array(headerBytes);
    readSync(file, text, 0, headerBytes, LENGTH_BYTES);
    return parseHeader(text, fileBytes - LENGTH_BYTES - headerBytes, refuse);
  } finally {
    closeSync(file);
  }
}

function openFile(path: string, refuse: (reason: string) => MlxError): number {
  try {
    return openSync(path, "r");
  } catch (cause) {
    throw refuse(`cannot be opened (${cause instanceof Error ? cause.message : String(cause)})`);
  }
}

function parseHeader(
  text: Uint8Array,
  payloadBytes: number,
  refuse: (reason: string) => MlxError,
): SafetensorsHeader {
  const entries = Object.entries(parseObject(text, refuse));
  const metadata = new Map<string, string>();
  const names: string[] = [];
  for (const [name, entry] of entries) {
    if (name === "__metadata__") {
      for (const [key, value] of Object.entries(entry ?? {})) metadata.set(key, String(value));
      continue;
    }
    const end = endOffset(entry);
    if (end === undefined) throw refuse(`tensor ${name} has no valid data_offsets`);
    if (end > payloadBytes) {
      throw refuse(
        `cut short: tensor ${name} ends at byte ${end} of ${payloadBytes}; download the file again`,
      );
    }
    names.push(name);
  }
  return { names, metadata };
}

function parseObject(text: Uint8Array, refuse: (reason: string) => MlxError): object {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch {
    throw refuse("the header is not JSON: not a safetensors file, or damaged");
  }
  if (typeof header !== "object" || header === null || Array.isArray(header)) {
    throw refuse("the header is not a JSON object");
  }
  return header;
}

function endOffset(entry: unknown): number | undefined {
  if (typeof entry !== "object" || entry === null || !("data_offsets" in entry)) return undefined;
  const offsets = entry.data_offsets;
  if (!Array.isArray(offsets) || offsets.length !== 2) return undefined;
  const [start, end]: unknown[] = offsets;
  if (typeof start !== "number" || typeof end !== "number") return undefined;
  return 0 <= start && start <= end ? end : undefined;
}
