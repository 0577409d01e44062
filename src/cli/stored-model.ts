/** What the store knows of a model, and what its configuration says at a glance. */
import { join } from "node:path";
import { kindOf, readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { lastUsed, type Manifest, readManifest } from "../hub/manifest.ts";
import { modelIn, sizeOf } from "../hub/store.ts";

export interface StoredModel {
  readonly name: string;
  readonly directory: string;
  readonly sizeBytes: number;
  readonly kind: string;
  readonly family: string;
  /** undefined where it was not downloaded by this program. */
  readonly lastUsed: Date | undefined;
  readonly manifest: Manifest | undefined;
}

/** @param name as `-m` takes it */
export function storedModelNamed(store: string, name: string): StoredModel {
  const directory = join(store, name);
  return {
    name,
    directory,
    sizeBytes: sizeOf(directory),
    ...kindAndFamily(modelIn(directory, { gguf: undefined, text: name }) ?? directory),
    lastUsed: lastUsed(directory),
    manifest: readManifest(directory),
  };
}

/** A model that cannot be read is listed all the same: it takes up space. */
function kindAndFamily(path: string): { kind: string; family: string } {
  try {
    const checkpoint = readCheckpoint(path);
    return { kind: kindOf(checkpoint), family: checkpoint.modelType };
  } catch (error) {
    if (error instanceof CheckpointError) return { kind: "unreadable", family: "-" };
    throw error;
  }
}
