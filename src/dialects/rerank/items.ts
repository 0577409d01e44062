import { Failure } from "../../worker/failure.ts";
import type { EmbedItem } from "../../worker/job.ts";
import { MAX_DOCUMENTS } from "./ranking.ts";

const SHAPE = "a string or an object with text";

/**
 * The documents of a rerank request: strings, or objects of which `text` counts.
 *
 * @param name the field's name, for messages
 * @throws Failure("invalid") with the index of what is wrong, as in `documents[1]`
 */
export function rankedItems(value: unknown, name: string): EmbedItem[] {
  if (value === null || value === undefined) {
    throw new Failure("invalid", `${name} is missing: give a list of what to rank`, name);
  }
  if (!Array.isArray(value)) {
    throw new Failure("invalid", `${name} must be a list; each entry is ${SHAPE}`, name);
  }
  if (value.length === 0) {
    throw new Failure("invalid", `${name} is an empty list: there is nothing to rank`, name);
  }
  if (value.length > MAX_DOCUMENTS) {
    throw new Failure("invalid", `${name} has more than ${MAX_DOCUMENTS} entries: split it`, name);
  }
  return value.map((item: unknown, i) => ({ text: rankedText(item, `${name}[${i}]`) }));
}

/**
 * The text of a query or of one document. Images are refused by their key alone: nothing is opened or fetched.
 * @throws Failure("invalid") naming `at`
 */
export function rankedText(item: unknown, at: string): string {
  const text = typeof item === "object" && item !== null ? textOfObject(item, at) : item;
  if (text === null || text === undefined) {
    const problem = text === item ? "is missing" : "has no text";
    throw new Failure("invalid", `${at} ${problem}: give ${SHAPE}`, at);
  }
  if (typeof text !== "string") throw new Failure("invalid", `${at} must be ${SHAPE}`, at);
  if (text.trim() === "") {
    throw new Failure("invalid", `${at} has no text: give at least one visible character`, at);
  }
  // stray halves of surrogate pairs become U+FFFD, as they do when a big request is packed as UTF-8
  return text.toWellFormed();
}

interface ItemObject {
  readonly text?: unknown;
  readonly image?: unknown;
  readonly image_url?: unknown;
}

function textOfObject(item: object, at: string): unknown {
  if (Array.isArray(item)) throw new Failure("invalid", `${at} must be ${SHAPE}`, at);
  const { text, image, image_url }: ItemObject = item;
  if ((image ?? image_url ?? null) !== null) {
    throw new Failure("invalid", `${at} has an image, but this model is a text reranker`, at);
  }
  return text;
}
