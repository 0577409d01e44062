import { joinParts, partAt, type ByteParts } from "../../worker/byte-parts.ts";
import { Failure } from "../../worker/failure.ts";
import type { RerankJob, RerankResult, Result } from "../../worker/job.ts";
import { answerBytes, totalTokens } from "../answer-bytes.ts";
import type {
  Dialect,
  ParseContext,
  RankingOptions,
  RenderOptions,
  ServedModel,
} from "../dialect.ts";
import { JsonBuffer, requireFinite } from "../json-buffer.ts";
import { checkModel, quote, validate } from "../request.ts";
import { rankedItems, rankedText } from "./items.ts";
import { ranking } from "./ranking.ts";
import { rerankSchema } from "./schema.ts";

type RerankFields = ReturnType<typeof validate<typeof rerankSchema>>;

/**
 * Reranking, best first. `documents` (Jina, Cohere) -> `{model, object:"list", results:[{index, relevance_score,
 * document?}], usage}`; `texts` (text-embeddings-inference) -> `[{index, score, text?}]`.
 */
export const rerank: Dialect<RerankJob> = {
  parse(body, context) {
    const fields = validate(rerankSchema, body);
    checkModel(fields.model, context.model);
    const query = rankedText(fields.query, "query");
    const name = isAbsent(fields.documents) && !isAbsent(fields.texts) ? "texts" : "documents";
    const items = rankedItems(fields[name], name);
    return {
      job: {
        kind: "rerank",
        query,
        items,
        field: { name, isList: true },
        instruction: instruction(fields.instruction, context.model),
        truncate: fields.truncate ?? context.truncate,
      },
      render: rankingOptions(fields, name, context),
    };
  },

  render(anyResult, anyOptions) {
    const { result, options } = rerankAnswer(anyResult, anyOptions);
    const json = new JsonBuffer(answerBytes(result, options));
    if (options.shape === "bare") {
      writeResults(json, result, options, { score: "score", echo: "text" });
      return json.finish();
    }
    json.raw(`{"model":${JSON.stringify(options.model)},"object":"list","results":`);
    writeResults(json, result, options, { score: "relevance_score", echo: "document" });
    const tokens = totalTokens(result);
    return json.raw(`,"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`).finish();
  },
};

function isAbsent(value: unknown): boolean {
  return value === null || value === undefined;
}

/** A blank one counts as absent. A ranking embedder formats its queries with it, or ignores it like any embedder. */
function instruction(
  given: string | null | undefined,
  { id, info }: ServedModel,
): string | undefined {
  if (!given?.trim()) return undefined;
  if (info.kind === "embedding" || info.takesInstruction) return given.toWellFormed();
  throw new Failure(
    "invalid",
    `instruction means nothing to ${quote(id)}, a classifier: leave it out`,
    "instruction",
  );
}

function rankingOptions(
  fields: RerankFields,
  name: "documents" | "texts",
  { model, rawScores }: ParseContext,
): RankingOptions {
  const isEchoed = fields.return_text || (name === "documents" && fields.return_documents);
  return {
    kind: "ranking",
    model: model.id,
    shape: name === "documents" ? "envelope" : "bare",
    topN: fields.top_n ?? undefined,
    rawScores: fields.raw_scores ?? rawScores,
    echo: isEchoed ? echo(fields[name]) : undefined,
  };
}

/** The items as they stood in the request, in the form that rendering splices in. */
function echo(items: unknown): ByteParts | undefined {
  if (!Array.isArray(items)) return undefined;
  const encoder = new TextEncoder();
  return joinParts(items.map((item) => encoder.encode(JSON.stringify(item))));
}

/** What to render for a rerank job, checked to be printable; anything else is our fault. */
function rerankAnswer(
  result: Result,
  options: RenderOptions,
): { readonly result: RerankResult; readonly options: RankingOptions } {
  if (result.kind !== "rerank" || options.kind !== "ranking") {
    throw new Failure("internal", `the model answered "${result.kind}" instead of scores`);
  }
  requireFinite(result.scores, "a score");
  requireFinite(result.rawScores, "a score");
  return { result, options };
}

function writeResults(
  json: JsonBuffer,
  result: RerankResult,
  options: RankingOptions,
  key: { readonly score: string; readonly echo: string },
): void {
  const { scores, order } = ranking(result, options);
  json.raw("[");
  order.forEach((item, place) => {
    json.raw(`${place > 0 ? "},{" : "{"}"index":${item},"${key.score}":`).float(scores, item);
    if (options.echo) json.raw(`,"${key.echo}":`).bytes(partAt(options.echo, item));
  });
  json.raw("}]");
}
