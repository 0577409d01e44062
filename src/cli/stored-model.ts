/** What the store knows of a model, and what its configuration says at a glance. */
import { join } from "node:path";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { lastUsed, type Manifest, readManifest } from "../hub/manifest.ts";
import { findModel, type ResolvedModel } from "../hub/resolve.ts";
import { modelIn, sizeOf, storedModels } from "../hub/store.ts";
import type { Environment } from "../native/environment.ts";
import { nearest } from "./nearest.ts";

export interface StoredModel {
  readonly name: string;
  readonly directory: string;
  readonly sizeBytes: number;
  readonly kind: string;
  readonly family: string;
  /** Why its configuration cannot be read; undefined where it can. */
  readonly fault: string | undefined;
  /** undefined where it was not downloaded by this program. */
  readonly lastUsed: Date | undefined;
  readonly manifest: Manifest | undefined;
}

/** @param name as `-m` takes it */
export function storedModelNamed(name: string, store: string, env: Environment): StoredModel {
  const directory = join(store, name);
  const path = modelIn(directory, { gguf: undefined, text: name });
  return {
    name,
    directory,
    sizeBytes: sizeOf(directory),
    ...kindAndFamily(path === undefined ? undefined : findModel(path, { modelsDir: store, env })),
    lastUsed: lastUsed(directory),
    manifest: readManifest(directory),
  };
}

/** A model that cannot be read is listed all the same: it takes up space. */
function kindAndFamily(
  model: ResolvedModel | undefined,
): Pick<StoredModel, "kind" | "family" | "fault"> {
  const unreadable = { kind: "unreadable", family: "-" };
  if (!model) return { ...unreadable, fault: "it holds no model" };
  try {
    const checkpoint = readCheckpoint(model.directory, model.base);
    return { kind: kindOf(checkpoint), family: checkpoint.modelType, fault: undefined };
  } catch (error) {
    if (error instanceof CheckpointError) return { ...unreadable, fault: error.message };
    throw error;
  }
}

/** The model of the store that `name` was most likely meant to be, if any: one of that name by another owner first. */
export function nearestStored(name: string, store: string): string | undefined {
  const stored = storedModels(store);
  const lastPart = (text: string) => text.split("/").at(-1)?.toLowerCase();
  return (
    stored.find((candidate) => lastPart(candidate) === lastPart(name)) ?? nearest(name, stored)
  );
}
