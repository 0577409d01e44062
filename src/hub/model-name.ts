/** The name of a repository on the hub, with one of its GGUF files or without. */
import { isAbsolute } from "node:path";

export interface ModelName {
  /** As it was asked for, without a slash at the end. */
  readonly text: string;
  /** `<owner>/<name>`, or `<name>` where it is alone. */
  readonly repository: string;
  /** A GGUF file of the repository, or the quantisation of one, such as `Q8_0`. */
  readonly gguf: string | undefined;
}

/** Letters, digits, `_`, `-` and `.`, the last two not at the ends; so a name stays in the directory it is put in. */
const PART = /^\w(?:[\w.-]*\w)?$/;

/** Ollama's word for "whichever"; llama.cpp takes it, too. */
const NO_CHOICE = "latest";

/** A repository is not called like one of the files in it. */
const FILE_NAME = /\.(gguf|safetensors|bin)$/i;

/** undefined for a text that can only be a path. */
export function parseModelName(name: string): ModelName | undefined {
  const text = name.replace(/\/+$/, "");
  if (isAbsolute(text) || /^[.~]/.test(text)) return undefined;
  const [, repository = "", tag] = /^([^:]+)(?::(.+))?$/.exec(text) ?? [];
  const parts = repository.split("/");
  const isRepository = parts.length <= 2 && parts.every(isNamePart) && !FILE_NAME.test(repository);
  if (!isRepository || (tag !== undefined && !isSafePath(tag))) return undefined;
  return { text, repository, gguf: tag === NO_CHOICE ? undefined : tag };
}

function isNamePart(part: string): boolean {
  return PART.test(part) && !part.includes("..") && !part.includes("--");
}

/** Whether a path that a hub states names a file below the directory it is meant for, on every system. */
export function isSafePath(path: string): boolean {
  const isOdd = (part: string) => part === "" || part === "." || part === "..";
  return !/[\\:\u0000-\u001f\u007f]/.test(path) && !path.split("/").some(isOdd);
}
