import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { checkJson } from "../checkpoint/json-file.ts";
import { int32Index } from "./tokenizer-file.ts";

/** One element of the row that a post-processor makes: a special token, or the place of a text. */
export type TemplatePart =
  | { readonly kind: "special"; readonly id: number; readonly typeId: number }
  | { readonly kind: "text"; readonly text: "A" | "B"; readonly typeId: number };

/** Rows of one text (A) and of two (A and B). */
export interface Templates {
  readonly single: readonly TemplatePart[];
  readonly pair: readonly TemplatePart[];
}

const special = z.object({ SpecialToken: z.object({ id: z.string(), type_id: int32Index }) });
const sequence = z.object({ Sequence: z.object({ id: z.enum(["A", "B"]), type_id: int32Index }) });

const templateProcessing = z.looseObject({
  single: z.array(z.union([special, sequence])),
  pair: z.array(z.union([special, sequence])),
  special_tokens: z.record(z.string(), z.looseObject({ ids: z.array(int32Index) })),
});

const tokenAndId = z.tuple([z.string(), int32Index]);
const bertProcessing = z.looseObject({ cls: tokenAndId, sep: tokenAndId });

const sequenceOfProcessors = z.looseObject({
  processors: z.array(z.looseObject({ type: z.string() })),
});

const A: TemplatePart = { kind: "text", text: "A", typeId: 0 };
const B: TemplatePart = { kind: "text", text: "B", typeId: 0 };
const B_OF_ANOTHER_TYPE: TemplatePart = { ...B, typeId: 1 };

/** What no processor at all makes of texts. */
const PLAIN: Templates = { single: [A], pair: [A, B_OF_ANOTHER_TYPE] };

/**
 * The rows that `post_processor` of tokenizer.json describes. `path` is named in errors. Throws CheckpointError for
 * a processor that is not known, for a row of one text without it, and for a row that repeats a text.
 */
export function templatesOf(path: string, processor: { readonly type: string } | null): Templates {
  const templates = describedBy(path, processor);
  const { single, pair } = templates;
  if (timesOf("A", single) === 0 || timesOf("B", single) > 0) {
    throw new CheckpointError(`${path}: post_processor must put one text, A, in "single"`);
  }
  if (timesOf("A", single) > 1 || timesOf("A", pair) > 1 || timesOf("B", pair) > 1) {
    throw new CheckpointError(`${path}: post_processor repeats a text, which is not supported`);
  }
  return templates;
}

function timesOf(text: "A" | "B", template: readonly TemplatePart[]): number {
  return template.filter((part) => part.kind === "text" && part.text === text).length;
}

function describedBy(path: string, processor: { readonly type: string } | null): Templates {
  const place = `${path}: post_processor`;
  switch (processor?.type) {
    case undefined:
    case "ByteLevel": // concerns offsets only
      return PLAIN;
    case "TemplateProcessing":
      return fromTemplate(path, checkJson(place, processor, templateProcessing));
    case "BertProcessing": {
      const { cls, sep } = specialsOf(place, processor);
      return {
        single: [cls, A, sep],
        pair: [cls, A, sep, B_OF_ANOTHER_TYPE, { ...sep, typeId: 1 }],
      };
    }
    case "RobertaProcessing": {
      const { cls, sep } = specialsOf(place, processor);
      return { single: [cls, A, sep], pair: [cls, A, sep, sep, B, sep] };
    }
    case "Sequence":
      return checkJson(place, processor, sequenceOfProcessors)
        .processors.map((step) => describedBy(path, step))
        .reduce(wrapped, PLAIN);
    default:
      throw new CheckpointError(
        `${place} type "${processor?.type}" is not supported; supported are TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence`,
      );
  }
}

type StoredTemplate = z.output<typeof templateProcessing>;

function fromTemplate(path: string, stored: StoredTemplate): Templates {
  const parts = (template: StoredTemplate["single"]) =>
    template.flatMap((part): TemplatePart[] => {
      if ("Sequence" in part) {
        const { id: text, type_id: typeId } = part.Sequence;
        return [{ kind: "text", text, typeId }];
      }
      const { id: name, type_id } = part.SpecialToken;
      const token = stored.special_tokens[name];
      if (token === undefined) {
        throw new CheckpointError(`${path}: post_processor uses "${name}" without an id for it`);
      }
      return token.ids.map((id) => specialPart(id, type_id));
    });
  return { single: parts(stored.single), pair: parts(stored.pair) };
}

function specialsOf(place: string, processor: unknown) {
  const { cls, sep } = checkJson(place, processor, bertProcessing);
  return { cls: specialPart(cls[1], 0), sep: specialPart(sep[1], 0) };
}

/** A later processor of a sequence sees the row of one text by the earlier ones as its text. */
function wrapped(inner: Templates, outer: Templates): Templates {
  return {
    single: outer.single.flatMap((part) => (part.kind === "text" ? inner.single : [part])),
    pair: outer === PLAIN ? inner.pair : outer.pair,
  };
}

function specialPart(id: number, typeId: number): TemplatePart {
  return { kind: "special", id, typeId };
}
