/** Flags that the commands without a server share. */
import { DEFAULT_MODEL } from "../hub/resolve.ts";
import { flag } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { onOff, text } from "./values.ts";

const { modelsDir, revision, hfToken, offline } = flagsSchema.shape;
const { device, cpuDequantize, cpuPrecision, help } = flagsSchema.shape;
const { memoryLimit, cacheLimit } = flagsSchema.shape;

/** Where models are found and downloaded from. */
export const hubFlags = { modelsDir, revision, hfToken, offline };

/** Of the commands that only look into the store. */
export const storeFlags = { modelsDir, help };

export const modelFlags = {
  model: flag(text("a directory or a repository name").optional(), {
    group: "Model",
    placeholder: "NAME",
    aliases: ["-m"],
    help: `A directory, a GGUF file, or a repository <owner>/<name>, downloaded where it is not here yet. Default: ${DEFAULT_MODEL}.`,
  }),
  ...hubFlags,
};

/** @param instead what the command prints otherwise, in words that complete a sentence */
export function jsonFlag(instead: string) {
  return flag(onOff(), {
    group: "Output",
    noEnv: true,
    help: `JSON for programs instead of ${instead}.`,
  });
}

export const outputFlags = {
  json: jsonFlag("a table, in the form that the server answers"),
  output: flag(text("a file").optional(), {
    group: "Output",
    placeholder: "FILE",
    aliases: ["-o"],
    noEnv: true,
    help: "Write there instead of to stdout; its directory must be there.",
  }),
};

export const resourceFlags = {
  ...{ device, cpuDequantize, cpuPrecision },
  ...{ memoryLimit, cacheLimit, help },
};

/** The flag that reads texts from a file. */
export function fileFlag() {
  return flag(text("a file, or - for stdin").optional(), {
    group: "Input",
    placeholder: "FILE",
    aliases: ["-f"],
    noEnv: true,
    help: "One text per line, after those of the command line; - is stdin. A .jsonl file holds JSON on each line: a string, or an object with text.",
  });
}

/** The flag that takes --file for JSON lines whatever its name says. */
export function jsonlFlag() {
  return flag(onOff(), {
    group: "Input",
    noEnv: true,
    help: "--file holds JSON lines, whatever its name.",
  });
}
