/** `mlxcel rerank`: documents in the order in which they answer a query, without a server. */
import { z } from "zod";
import type { RankingOptions } from "../dialects/dialect.ts";
import { ranking } from "../dialects/rerank/ranking.ts";
import { rerank as rerankDialect } from "../dialects/rerank/rerank.ts";
import type { Environment } from "../native/environment.ts";
import { colourWanted } from "../serving/log.ts";
import type { EmbedderInfo, RerankResult } from "../worker/job.ts";
import { rerankInChunks } from "./chunks.ts";
import { fileFlag, jsonlFlag, modelFlags, outputFlags, resourceFlags } from "./command-flags.ts";
import { flag, flagsOf, type FlagTable } from "./flag-table.ts";
import { GivenTexts } from "./given-texts.ts";
import { commandHelp } from "./help.ts";
import { LocalModel } from "./local-model.ts";
import {
  remark,
  requireWritable,
  terminalColumns,
  withNewline,
  withProgress,
  writeAnswer,
} from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { shortText, tableText } from "./table.ts";
import { textOf, type FileItem } from "./text-file.ts";
import { UsageError } from "./usage-error.ts";
import { onOff, text, wholeNumber } from "./values.ts";

const schema = z.object({
  ...modelFlags,
  query: flag(text("a text").optional(), {
    group: "Input",
    placeholder: "QUERY",
    aliases: ["-q"],
    noEnv: true,
    help: "What the documents are to answer.",
  }),
  document: flag(z.array(z.string()).optional(), {
    group: "Input",
    placeholder: "DOC...",
    aliases: ["-d"],
    noEnv: true,
    repeats: true,
    takesMany: true,
    help: "One or more documents.",
  }),
  file: fileFlag(),
  jsonl: jsonlFlag(),
  instruction: flag(text("a task in words").optional(), {
    group: "Ranking",
    placeholder: "TEXT",
    noEnv: true,
    help: "What makes a document relevant, for generative rerankers.",
  }),
  topN: flag(wholeNumber(1).optional(), {
    group: "Ranking",
    placeholder: "N",
    aliases: ["-n"],
    noEnv: true,
    help: "Only the N best.",
  }),
  rawScores: flag(onOff(), {
    group: "Ranking",
    noEnv: true,
    help: "The model's own numbers (logits) instead of scores from 0 to 1.",
  }),
  ...outputFlags,
  ...resourceFlags,
});

type RerankFlags = z.output<typeof schema>;

/** The table of its flags. */
export const RERANK: FlagTable<typeof schema> = {
  command: "mlxcel rerank",
  schema,
  flags: flagsOf(schema),
  bareWord: "the query comes behind -q, documents come behind -d",
};

export function rerankHelp(colour: boolean): string {
  return commandHelp(
    RERANK,
    {
      title: "prints documents, best first",
      usage: [
        ["mlxcel rerank -m MODEL -q QUERY -d DOC...", "a table"],
        ["mlxcel rerank -m MODEL -q QUERY -d DOC... --json", "as /v1/rerank answers"],
        ["mlxcel rerank -m MODEL -q QUERY --file docs.txt", "a line each"],
      ],
      closing:
        "The model is a classifier with one label, a generative reranker of the Qwen3 kind, or an embedder: " +
        "then the score is the cosine of query and document, or their mean MaxSim where each token has a vector.",
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function rerank(args: readonly string[], env: Environment): Promise<number> {
  const { flags } = readCommandLine(RERANK, args, env);
  if (flags.query === undefined) throw new UsageError("nothing to rank by: give -q QUERY");
  requireWritable(flags.output);
  const given = await inputDocuments(flags);
  const documents = given.items;
  using model = await LocalModel.load("rank", flags, env);
  const { id, info } = model.context.model;
  const { job, render } = await given.inTheirWords(() =>
    rerankDialect.parse(
      {
        query: flags.query,
        documents,
        top_n: flags.topN,
        raw_scores: flags.rawScores,
        instruction: flags.instruction,
        return_documents: flags.json,
      },
      model.context,
    ),
  );
  // an embedder counts the query's tokens once per job: its documents stay together
  const size = info.kind === "embedding" ? documents.length : CHUNK_DOCUMENTS;
  const result = await withProgress("documents", documents.length, (onProgress) =>
    rerankInChunks(job, {
      size,
      submit: (chunk, first) => given.inTheirWords(() => model.submit(chunk), first),
      onProgress,
    }),
  );
  if (result.truncated > 0) {
    remark(`${result.truncated} of the pairs cut to the limit of ${info.maxLength} tokens`);
  }
  if (flags.json) {
    await writeAnswer(withNewline(rerankDialect.render(result, render)), flags.output);
  } else if (render.kind === "ranking") {
    const colour = flags.output === undefined && colourWanted(process.stdout);
    await writeAnswer(rankingTable({ documents, result, render }, colour), flags.output);
    if (info.kind === "embedding") remark(`${id} is an embedder: ${scoreKind(info, render)}`);
  }
  return 0;
}

/** Few enough for the progress to move, and many full batches for the worker. */
const CHUNK_DOCUMENTS = 256;

async function inputDocuments({ document, file, jsonl }: RerankFlags): Promise<GivenTexts> {
  const naming = { field: "documents", noun: "document", flag: "-d" };
  const documents = await GivenTexts.read(naming, { words: document, file, jsonl });
  if (documents.items.length > 0) return documents;
  throw new UsageError("nothing to rank: give -d DOC or --file FILE");
}

function scoreKind({ multiVector }: EmbedderInfo, { rawScores }: RankingOptions): string {
  if (!multiVector) return "scores are cosines";
  return `scores are MaxSim, ${rawScores ? "summed" : "averaged"} over the query's tokens`;
}

interface Ranked {
  readonly documents: readonly FileItem[];
  readonly result: RerankResult;
  readonly render: RankingOptions;
}

/** Columns of the table besides the documents. */
const NUMBERS_COLUMNS = 24;
const LEAST_TEXT_COLUMNS = 20;

function rankingTable({ documents, result, render }: Ranked, colour: boolean): string {
  const { scores, order } = ranking(result, render);
  const textColumns = Math.max(LEAST_TEXT_COLUMNS, terminalColumns() - NUMBERS_COLUMNS);
  const rows = order.map((item) => [
    (scores[item] ?? 0).toFixed(4),
    String(item),
    shortText(textOf(documents[item] ?? ""), textColumns),
  ]);
  const columns = [
    { title: "score", align: "right" },
    { title: "#", align: "right" },
    { title: "document", align: "left" },
  ] as const;
  return tableText(columns, rows, colour);
}
