import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";

/** One element of the row that a post-processor makes: a special token, or the place of a text. */
export type TemplatePart =
  | { readonly kind: "special"; readonly id: number; readonly typeId: number }
  | { readonly kind: "text"; readonly typeId: number };

const special = z.object({ SpecialToken: z.object({ id: z.string(), type_id: z.int() }) });
const sequence = z.object({ Sequence: z.object({ id: z.enum(["A", "B"]), type_id: z.int() }) });

const templateProcessing = z.looseObject({
  single: z.array(z.union([special, sequence])),
  special_tokens: z.record(z.string(), z.looseObject({ ids: z.array(z.int().nonnegative()) })),
});

const tokenAndId = z.tuple([z.string(), z.int().nonnegative()]);
const bertProcessing = z.looseObject({ cls: tokenAndId, sep: tokenAndId });

const sequenceOfProcessors = z.looseObject({
  processors: z.array(z.looseObject({ type: z.string() })),
});

const TEXT: TemplatePart = { kind: "text", typeId: 0 };

/**
 * The row of a single text as `post_processor` of tokenizer.json describes it. `path` is named in errors. Throws
 * CheckpointError for a processor that is not known.
 */
export function singleTemplate(
  path: string,
  processor: { readonly type: string } | null,
): readonly TemplatePart[] {
  switch (processor?.type) {
    case undefined:
    case "ByteLevel": // concerns offsets only
      return [TEXT];
    case "TemplateProcessing":
      return fromTemplate(path, parse(path, templateProcessing, processor));
    case "BertProcessing":
    case "RobertaProcessing": {
      const { cls, sep } = parse(path, bertProcessing, processor);
      return [specialPart(cls[1], 0), TEXT, specialPart(sep[1], 0)];
    }
    case "Sequence":
      return parse(path, sequenceOfProcessors, processor).processors.reduce<
        readonly TemplatePart[]
      >((inner, outer) => wrap(inner, singleTemplate(path, outer)), [TEXT]);
    default:
      throw new CheckpointError(
        `${path}: post_processor type "${processor?.type}" is not supported; supported are TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence`,
      );
  }
}

function fromTemplate(
  path: string,
  { single, special_tokens }: z.output<typeof templateProcessing>,
): TemplatePart[] {
  return single.flatMap((part): TemplatePart[] => {
    if ("Sequence" in part) return [{ kind: "text", typeId: part.Sequence.type_id }];
    const { id: name, type_id } = part.SpecialToken;
    const token = special_tokens[name];
    if (token === undefined) {
      throw new CheckpointError(`${path}: post_processor uses "${name}" without an id for it`);
    }
    return token.ids.map((id) => specialPart(id, type_id));
  });
}

/** A later processor of a sequence sees the row of the earlier ones as its text. */
function wrap(inner: readonly TemplatePart[], outer: readonly TemplatePart[]): TemplatePart[] {
  return outer.flatMap((part) => (part.kind === "text" ? inner : [part]));
}

function specialPart(id: number, typeId: number): TemplatePart {
  return { kind: "special", id, typeId };
}

function parse<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
  processor: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(processor);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CheckpointError(
    `${path}: post_processor at "${issue?.path.join(".")}": ${issue?.message}`,
  );
}
