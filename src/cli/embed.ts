/** `mlxcel embed`: the vectors of texts, without a server. */
import { z } from "zod";
import { totalTokens } from "../dialects/answer-bytes.ts";
import { openaiEmbeddings } from "../dialects/openai/embeddings.ts";
import type { Environment } from "../native/environment.ts";
import { colourWanted } from "../serving/log.ts";
import type { EmbedResult } from "../worker/job.ts";
import { embedInChunks } from "./chunks.ts";
import { fileFlag, jsonlFlag, modelFlags, outputFlags, resourceFlags } from "./command-flags.ts";
import { flag, flagsOf, type FlagTable } from "./flag-table.ts";
import { GivenTexts } from "./given-texts.ts";
import { commandHelp } from "./help.ts";
import { LocalModel } from "./local-model.ts";
import { npyFile } from "./npy.ts";
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
import { textOf } from "./text-file.ts";
import { UsageError } from "./usage-error.ts";
import { oneOf, onOff, text, wholeNumber } from "./values.ts";

const schema = z.object({
  ...modelFlags,
  text: flag(z.array(z.string()).optional(), {
    group: "Input",
    placeholder: "TEXT...",
    aliases: ["-t"],
    noEnv: true,
    repeats: true,
    takesMany: true,
    help: "One or more texts.",
  }),
  file: fileFlag(),
  jsonl: jsonlFlag(),
  dimensions: flag(wholeNumber(1).optional(), {
    group: "Vectors",
    placeholder: "N",
    noEnv: true,
    help: "Keep the first N components and normalise again.",
  }),
  promptName: flag(text("the name of a prompt").optional(), {
    group: "Vectors",
    placeholder: "NAME",
    noEnv: true,
    help: "Put that prompt of the model before each text: query, document, or a name of its own.",
  }),
  instruction: flag(text("a task in words").optional(), {
    group: "Vectors",
    placeholder: "TEXT",
    noEnv: true,
    help: "What the texts are for, for models with an instruction format.",
  }),
  pooling: flag(oneOf(["mean", "cls", "last", "max"]).optional(), {
    group: "Vectors",
    placeholder: "mean|cls|last|max",
    noEnv: true,
    help: "How token vectors become one vector. Default: what the model's files say.",
  }),
  embdNormalize: flag(wholeNumber(-1).optional(), {
    group: "Vectors",
    placeholder: "N",
    help: "Normalisation, by the server's numbers: -1 none, 2 L2, and so on. Default: what the model's files say.",
  }),
  ...outputFlags,
  npy: flag(onOff(), {
    group: "Output",
    noEnv: true,
    help: "A NumPy .npy file of shape (vectors, dimensions), little-endian f32: a vector per text, or per token.",
  }),
  ...resourceFlags,
});

type EmbedFlags = z.output<typeof schema>;

/** The table of its flags. */
export const EMBED: FlagTable<typeof schema> = {
  command: "mlxcel embed",
  schema,
  flags: flagsOf(schema),
  bareWord: "texts come behind -t",
};

export function embedHelp(colour: boolean): string {
  return commandHelp(
    EMBED,
    {
      title: "prints the vectors of texts",
      usage: [
        ["mlxcel embed -t TEXT...", "a table"],
        ["mlxcel embed -t TEXT... --json", "as /v1/embeddings answers"],
        ["mlxcel embed --file texts.txt --npy -o vectors.npy", "for NumPy"],
      ],
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function embed(args: readonly string[], env: Environment): Promise<number> {
  const { flags } = readCommandLine(EMBED, args, env);
  checkOutput(flags);
  const given = await inputTexts(flags);
  const texts = given.items.map(textOf);
  using model = await LocalModel.load("embed", flags, env, { pooling: flags.pooling });
  const { job, render } = await given.inTheirWords(() =>
    openaiEmbeddings.parse(
      {
        input: texts,
        dimensions: flags.dimensions,
        prompt_name: flags.promptName,
        instruction: flags.instruction,
        embd_normalize: flags.embdNormalize,
      },
      model.context,
    ),
  );
  const result = await withProgress("texts", texts.length, (onProgress) =>
    embedInChunks(job, {
      size: CHUNK_TEXTS,
      submit: (chunk, first) => given.inTheirWords(() => model.submit(chunk), first),
      onProgress,
    }),
  );
  const { id, info } = model.context.model;
  if (result.truncated > 0) {
    remark(`${result.truncated} of the texts cut to the limit of ${info.maxLength} tokens`);
  }
  if (flags.json) {
    await writeAnswer(withNewline(openaiEmbeddings.render(result, render)), flags.output);
  } else if (flags.npy) {
    const { vectors, dim, rowsPerItem } = result;
    const rows = vectors.length / dim;
    await writeAnswer(npyFile(vectors, rows, dim), flags.output);
    if (rowsPerItem) remark(`${rows} vectors, text after text; --json tells whose they are`);
  } else {
    const colour = flags.output === undefined && colourWanted(process.stdout);
    await writeAnswer(vectorsTable(id, texts, result, colour), flags.output);
  }
  return 0;
}

/** Few enough for the progress to move, and many full batches for the worker. */
const CHUNK_TEXTS = 256;

function checkOutput({ json, npy, output }: EmbedFlags): void {
  if (json && npy) throw new UsageError("--json and --npy are two forms of the answer; choose one");
  if (npy && output === undefined && process.stdout.isTTY) {
    throw new UsageError("--npy is binary: give --output FILE, or redirect stdout");
  }
  requireWritable(output);
}

async function inputTexts({ text, file, jsonl }: EmbedFlags): Promise<GivenTexts> {
  const naming = { field: "input", noun: "text", flag: "-t" };
  const texts = await GivenTexts.read(naming, { words: text, file, jsonl });
  if (texts.items.length > 0) return texts;
  throw new UsageError("nothing to embed: give -t TEXT or --file FILE");
}

const SHOWN_COMPONENTS = 4;
/** Columns of a table besides its texts. */
const NUMBERS_COLUMNS = 60;
const LEAST_TEXT_COLUMNS = 20;

function vectorsTable(
  id: string,
  texts: readonly string[],
  result: EmbedResult,
  colour: boolean,
): string {
  const textColumns = Math.max(LEAST_TEXT_COLUMNS, terminalColumns() - NUMBERS_COLUMNS);
  let first = 0;
  const rows = texts.map((shown, i) => {
    const start = first * result.dim;
    first += result.rowsPerItem?.[i] ?? 1;
    const vector = result.vectors.subarray(start, start + result.dim);
    return [
      String(i),
      shortText(shown, textColumns),
      String(result.tokens[i]),
      vectorText(vector, result.rowsPerItem?.[i]),
    ];
  });
  const columns = [
    { title: "#", align: "right" },
    { title: "text", align: "left" },
    { title: "tokens", align: "right" },
    { title: "vector", align: "left" },
  ] as const;
  const sum = `${id}: ${result.dim} dimensions, ${totalTokens(result)} tokens`;
  return `${tableText(columns, rows, colour)}\n${sum}\n`;
}

function vectorText(vector: Float32Array, rows: number | undefined): string {
  const shown = Array.from(vector.subarray(0, SHOWN_COMPONENTS), (value) =>
    value.toFixed(4).padStart(7),
  );
  const more = vector.length > SHOWN_COMPONENTS ? " …" : "";
  return `${shown.join(" ")}${more}${rows === undefined ? "" : ` (${rows} rows)`}`;
}
