import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "./error.ts";
import { readOptionalJson } from "./json-file.ts";

const MODULE_TYPES = ["Transformer", "Pooling", "Dense", "Normalize", "MultiVectorMask"] as const;

type ModuleType = (typeof MODULE_TYPES)[number];

/** One step of the sentence-transformers module chain. */
export interface ModuleEntry {
  readonly type: ModuleType;
  /** Folder of the module's files, relative to the checkpoint; "" is the checkpoint itself. */
  readonly path: string;
}

const modulesFile = z.array(z.looseObject({ type: z.string(), path: z.string().default("") }));

/**
 * The chain of modules.json in the order listed; undefined where there is no such file. Both spellings are read:
 * `sentence_transformers.models.Pooling` and `sentence_transformers.sentence_transformer.modules.pooling.Pooling`.
 * Throws CheckpointError naming a module type that is unknown, or a path that leads out of the checkpoint.
 */
export function readModules(directory: string): readonly ModuleEntry[] | undefined {
  const file = join(directory, "modules.json");
  return readOptionalJson(file, modulesFile)?.map(({ type, path }) => {
    const shortName = type.slice(type.lastIndexOf(".") + 1);
    const known = MODULE_TYPES.find((name) => name === shortName);
    if (known === undefined) {
      throw new CheckpointError(
        `${file}: module type "${type}" is not supported; supported are ${MODULE_TYPES.join(", ")}`,
      );
    }
    if (leavesDirectory(path)) {
      throw new CheckpointError(
        `${file}: path "${path}" leads out of the model's directory; a module's folder must lie in it`,
      );
    }
    return { type: known, path };
  });
}

/** Judges the text alone: files of the Hugging Face cache are links to other directories. */
function leavesDirectory(path: string): boolean {
  const rooted = /^([\\/]|[A-Za-z]:)/.test(path);
  return rooted || path.includes("\0") || path.split(/[\\/]/).includes("..");
}
