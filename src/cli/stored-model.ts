/** What the store knows of a model, and what its configuration says at a glance. */
import { join } from "node:path";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { lastUsed } from "../hub/last-use.ts";
import { type Manifest, readManifest } from "../hub/manifest.ts";
import { findModel } from "../hub/resolve.ts";
import { brokenLink, modelIn, sizeOf, storedModels } from "../hub/store.ts";
import type { Environment } from "../native/environment.ts";
import { reasonOf } from "../native/thrown.ts";
import { nearest } from "./nearest.ts";

export interface StoredModel {
  readonly name: string;
  readonly directory: string;
  readonly sizeBytes: number;
  readonly kind: string;
  readonly family: string;
  /** Why it cannot be read; undefined where it can. */
  readonly fault: string | undefined;
  /** undefined where no use is known. */
  readonly lastUsed: Date | undefined;
  /** undefined where it was not downloaded by this program. */
  readonly manifest: Manifest | undefined;
}

/**
 * A model that cannot be read is listed all the same: it takes up space.
 *
 * @param name as `-m` takes it
 */
export function storedModelNamed(name: string, store: string, env: Environment): StoredModel {
  const directory = join(store, name);
  const found = { name, directory, lastUsed: lastUsed(store, name) };
  const unread = { ...found, sizeBytes: 0, family: "-", manifest: undefined };
  const broken = brokenLink(directory);
  if (broken !== undefined) return { ...unread, kind: "broken link", fault: broken };
  let sizeBytes = 0;
  try {
    sizeBytes = sizeOf(directory);
    const path = modelIn(directory, { gguf: undefined, text: name });
    const model = path === undefined ? undefined : findModel(path, { modelsDir: store, env });
    if (!model) throw new Error("it holds no model");
    const manifest = readManifest(directory);
    const checkpoint = readCheckpoint(model.directory, model.base);
    const family = checkpoint.modelType;
    return { ...found, sizeBytes, kind: kindOf(checkpoint), family, fault: undefined, manifest };
  } catch (error) {
    return { ...unread, sizeBytes, kind: "unreadable", fault: reasonOf(error) };
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
