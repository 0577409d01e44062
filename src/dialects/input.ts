import { z } from "zod";
import { Failure } from "../worker/failure.ts";
import type { EmbedItem } from "../worker/job.ts";
import type { ParsedItems } from "./embed-fields.ts";

const TEXT_PART = z.object({ type: z.literal("text"), text: z.string() });
const IMAGE_PART = z.object({ type: z.enum(["image_url", "image"]) });

const SHAPES =
  "a string, a list of strings, a list of token ids, a list of lists of token ids, or a list of typed text parts";

/**
 * The items of an embeddings request, in any of the shapes that a body may hold them: a string, a list of
 * strings and typed parts, a list of token ids or a list of such lists, or `{"content":[parts]}` for one item.
 *
 * @param name the field's name, for messages
 * @param vocabSize token ids must be below it
 * @throws Failure("invalid") with the index of what is wrong, as in `input[3]`
 */
export function parseItems(value: unknown, name: string, vocabSize: number): ParsedItems {
  if (value === null || value === undefined) {
    throw new Failure("invalid", `${name} is missing: give ${SHAPES}`, name);
  }
  if (!Array.isArray(value)) {
    return { items: [textItem(value, name)], field: { name, isList: false } };
  }
  if (value.length === 0) throw new Failure("invalid", `${name} is an empty list`, name);
  if (typeof value[0] === "number") {
    const ids = tokenIds(value, name, vocabSize);
    return { items: [{ ids }], field: { name, isList: false } };
  }
  const items = Array.isArray(value[0])
    ? value.map((element: unknown, i) => idListItem(element, `${name}[${i}]`, vocabSize))
    : value.map((element: unknown, i) => textItem(element, `${name}[${i}]`));
  return { items, field: { name, isList: true } };
}

function idListItem(element: unknown, at: string, vocabSize: number): EmbedItem {
  if (!Array.isArray(element)) {
    throw new Failure("invalid", `${at} must be a list of token ids like the ones before it`, at);
  }
  if (element.length === 0) throw new Failure("invalid", `${at} is an empty list`, at);
  return { ids: tokenIds(element, at, vocabSize) };
}

/** One plain loop: half a million ids take a millisecond. */
export function tokenIds(
  list: readonly unknown[],
  at: string,
  vocabSize: number,
): Int32Array<ArrayBuffer> {
  const ids = new Int32Array(list.length);
  for (let i = 0; i < list.length; i++) {
    const id = list[i];
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0) {
      const where = `${at}[${i}]`;
      throw new Failure("invalid", `${where} must be a token id, an integer from 0 on`, where);
    }
    if (id >= vocabSize) {
      const where = `${at}[${i}]`;
      throw new Failure(
        "invalid",
        `${where}: token id ${id} is not in this model's vocabulary of ${vocabSize}. Token ids must come ` +
          "from the model's own tokenizer; LangChain's OpenAIEmbeddings sends text instead with " +
          "check_embedding_ctx_length=False",
        where,
      );
    }
    ids[i] = id;
  }
  return ids;
}

function textItem(element: unknown, at: string): EmbedItem {
  if (typeof element === "string") {
    if (element === "") throw new Failure("invalid", `${at} is an empty string`, at);
    // stray halves of surrogate pairs become U+FFFD, as they do when a big request is packed as UTF-8
    return { text: element.toWellFormed() };
  }
  if (typeof element !== "object" || element === null || Array.isArray(element)) {
    throw new Failure("invalid", `${at} does not fit: the field takes ${SHAPES}`, at);
  }
  return "content" in element ? joinedItem(element.content, at) : partItem(element, at);
}

/** `{"type":"text",…}` and its kin. Images are refused by their type alone: nothing is opened or fetched. */
function partItem(part: object, at: string): EmbedItem {
  if (IMAGE_PART.safeParse(part).success) {
    throw new Failure("invalid", `${at} is an image, but this model is text-only`, at);
  }
  const parsed = TEXT_PART.safeParse(part);
  if (!parsed.success) {
    throw new Failure("invalid", `${at} must be a string or {"type":"text","text":"…"}`, at);
  }
  return textItem(parsed.data.text, at);
}

/** One item made of several parts. Text-only families have nothing to join. */
function joinedItem(content: unknown, at: string): EmbedItem {
  const where = `${at}.content`;
  if (!Array.isArray(content) || content.length === 0) {
    throw new Failure("invalid", `${where} must be a list of text parts that is not empty`, at);
  }
  const parts = content.map((part: unknown, i): EmbedItem => {
    if (typeof part === "object" && part !== null && "content" in part) {
      throw new Failure("invalid", `${where}[${i}] must be a text part, not a list of them`, at);
    }
    return textItem(part, `${where}[${i}]`);
  });
  const [only] = parts;
  if (!only || parts.length > 1) {
    throw new Failure(
      "invalid",
      `${at} has ${parts.length} parts, and this model cannot join parts into one vector: send each as its own item`,
      at,
    );
  }
  return only;
}
