/** What a download leaves beside a model's files: where they came from. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { jsonOf } from "./json-text.ts";
import { readText } from "./text-file.ts";

const MANIFEST_FILE = ".mlxcel.json";

const storedFile = z.object({
  path: z.string(),
  sizeBytes: z.int().nonnegative(),
  /** SHA-256 of a large file; of a small one git's id: the SHA-1 of a header and the content. */
  oid: z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/),
});

const manifestSchema = z.object({
  repository: z.string(),
  /** Where it came from, without a path. */
  endpoint: z.string(),
  /** The branch, tag or commit that was asked for. */
  revision: z.string(),
  commit: z.string(),
  downloadedAt: z.iso.datetime(),
  files: z.array(storedFile),
});

export type StoredFile = z.output<typeof storedFile>;
export type Manifest = z.output<typeof manifestSchema>;

/** undefined where something else put the files there. Throws Error naming a manifest that is damaged. */
export function readManifest(directory: string): Manifest | undefined {
  const path = join(directory, MANIFEST_FILE);
  const text = readText(path);
  if (text === undefined) return undefined;
  const parsed = manifestSchema.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${path} is damaged; delete ${directory} and download the model again`);
}

export function writeManifest(directory: string, manifest: Manifest): void {
  const path = join(directory, MANIFEST_FILE);
  writeFileSync(`${path}.new`, `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(`${path}.new`, path);
}
