import { cpSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { POOLING_FOLDER } from "../hub/file-names.ts";
import type { Checkpoint } from "./checkpoint.ts";

/** Tokenizers, settings, templates and licences; no weights of any format. */
const COMPANION = /\.(json|jsonl|txt|model|jinja|md)$|^(LICENSE|NOTICE)/i;
const OF_WEIGHTS = /\.index\.json$/;

/**
 * Copies what belongs to a checkpoint besides the config.json and the weights of its network, which must be there
 * already: tokenizer, settings of sentence-transformers, and the folders of modules with weights of their own.
 */
export function copyCompanions(checkpoint: Checkpoint, target: string): void {
  const { directory, transformerDirectory, modules = [] } = checkpoint;
  const folder = join(target, relative(directory, transformerDirectory));
  copyFiles(directory, target);
  if (transformerDirectory !== directory) copyFiles(transformerDirectory, folder);
  const folders = [...modules.map(({ path }) => path), POOLING_FOLDER];
  const present = new Set(readdirSync(directory));
  for (const path of new Set(folders)) {
    const isOwn =
      path !== "" && present.has(path) && join(directory, path) !== transformerDirectory;
    // Files of the Hugging Face cache are links.
    if (isOwn)
      cpSync(join(directory, path), join(target, path), { recursive: true, dereference: true });
  }
}

function copyFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const { name } = entry;
    if (entry.isDirectory() || !COMPANION.test(name) || OF_WEIGHTS.test(name)) continue;
    if (name !== "config.json") cpSync(join(from, name), join(to, name), { dereference: true });
  }
}
