/**
 * The modules that run as threads or programs of their own; build.ts bundles each of them. In an executable a bundle
 * keeps its place below src/, and so this module must lie beside main.ts.
 */
import { fileURLToPath } from "node:url";
import { executable } from "./native/executable.ts";

export const modelWorkerUrl = new URL("./worker/model-worker.ts", import.meta.url);
export const codecWorkerUrl = new URL("./http/codec-worker.ts", import.meta.url);
export const loadWorkerUrl = new URL("./cli/bench/load-worker.ts", import.meta.url);

/** Starts this program anew; flags follow. */
export const ownCommand: readonly string[] = executable
  ? [process.execPath]
  : [process.execPath, "--no-orphans", fileURLToPath(new URL("./main.ts", import.meta.url))];
