/** `mlxcel bench`: what a server does under load, alone or beside others. */
import { z } from "zod";
import { DEFAULT_MODEL } from "../hub/resolve.ts";
import type { Environment } from "../native/environment.ts";
import { colourWanted } from "../serving/log.ts";
import type { CosineDistance } from "./bench/agreement.ts";
import { runBench, type Report } from "./bench/bench-run.ts";
import { startOwnServer } from "./bench/own-server.ts";
import { cellsTable } from "./bench/report.ts";
import { isRerank, SCENARIO_NAMES, SCENARIOS, type Scenario } from "./bench/scenarios.ts";
import { parseTarget, type Target } from "./bench/target.ts";
import { hubFlags, jsonFlag, modelFlags, outputFlags } from "./command-flags.ts";
import { flag, flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { namedModel } from "./named-model.ts";
import { remark, requireWritable, writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { UsageError } from "./usage-error.ts";
import { commaList, oneOf, text, wholeNumber } from "./values.ts";

const seconds = "a number of seconds above 0, such as 5 or 0.5";

const schema = z.object({
  model: flag(modelFlags.model.unwrap().optional(), {
    group: "What is measured",
    placeholder: "NAME",
    aliases: ["-m"],
    noEnv: true,
    help: `The embedder of a server that is started for this: a directory, a GGUF file, or a repository <owner>/<name>. Default: ${DEFAULT_MODEL}. With --target: what requests name as their model.`,
  }),
  rerankModel: flag(text("a directory or a repository name").optional(), {
    group: "What is measured",
    placeholder: "NAME",
    aliases: ["--reranker-model"],
    noEnv: true,
    help: "The same for reranking; without it d1 and d4 are left out.",
  }),
  cpuPrecision: flag(oneOf(["f32", "bf16"]), {
    group: "What is measured",
    placeholder: "f32|bf16",
    noEnv: true,
    default: "f32",
    help: "bf16 starts a server with it beside one without, and tells how far their vectors are apart.",
  }),
  ...hubFlags,
  target: flag(z.array(z.string()).optional(), {
    group: "What is measured",
    placeholder: "[NAME=]URL",
    noEnv: true,
    repeats: true,
    help: "A server that runs already and answers as OpenAI's /v1/embeddings and Jina's /v1/rerank do; give it again to compare several. Behind the URL, separated by commas: pid=N (for its memory, and to tell its processor time from other processes'), rerank-url=URL where another server ranks, model=NAME and rerank-model=NAME. The first one needs /tokenize.",
  }),
  scenarios: flag(commaList(`all, or some of ${SCENARIO_NAMES.join(", ")}`), {
    group: "How",
    placeholder: "NAMES",
    aliases: ["-s"],
    noEnv: true,
    repeats: true,
    default: "all",
    help: "a: short texts at 1, 8 and 32 clients; b: batches of 32 passages at 1 and 4; c: 58 clients with short texts and 6 with batches of 64; d: 1 query and 32 documents at 1 and 4; e: texts of 512 tokens, 1 and 8 per request.",
  }),
  seconds: flag(z.string().transform(Number).pipe(z.number(seconds).positive(seconds)), {
    group: "How",
    placeholder: "N",
    noEnv: true,
    default: "5",
    help: "Of one run; c takes three times as long.",
  }),
  rounds: flag(wholeNumber(1), {
    group: "How",
    placeholder: "N",
    noEnv: true,
    default: "3",
    help: "Runs of each scenario on each target, in turns; figures are their medians.",
  }),
  json: jsonFlag("a table, with every single run"),
  output: outputFlags.output,
  help: flagsSchema.shape.help,
});

type BenchFlags = z.output<typeof schema>;

/** The table of its flags. */
export const BENCH: FlagTable<typeof schema> = {
  command: "mlxcel bench",
  schema,
  flags: flagsOf(schema),
  bareWord: "a model comes behind -m, a server behind --target",
};

export function benchHelp(colour: boolean): string {
  return commandHelp(
    BENCH,
    {
      title: "measures a server under load",
      usage: [
        ["mlxcel bench -m MODEL", "a server of this program, all scenarios"],
        ["mlxcel bench -s a1,a32 --seconds 2", "some of them, shorter"],
        ["mlxcel bench --target A --target B", "two servers that run, side by side"],
      ],
      closing:
        "Only runs of one call can be compared: the targets take turns, so that other work on the machine hits all alike. " +
        "Runs during which other processes took more than 15 % of it are noisy: they count only where there are no others, marked ~. " +
        "Tokens are counted from the texts, not taken from answers. Before anything is measured, all targets must give the same vectors and scores. " +
        "The exit code is 1 when a scenario got no answer at all.",
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function bench(args: readonly string[], env: Environment): Promise<number> {
  const { flags } = readCommandLine(BENCH, args, env);
  const scenarios = chosenScenarios(flags);
  requireWritable(flags.output);
  const report = flags.target
    ? await measureTargets(flags.target, flags, scenarios)
    : await measureOwnServer(flags, scenarios, env);
  const colour = flags.output === undefined && colourWanted(process.stdout);
  await writeAnswer(
    flags.json ? `${JSON.stringify(report, null, 2)}\n` : describe(report, colour),
    flags.output,
  );
  return report.summary.some(({ requests }) => requests === 0) ? 1 : 0;
}

function chosenScenarios({ scenarios, target, rerankModel }: BenchFlags): Scenario[] {
  const canRank = target !== undefined || rerankModel !== undefined;
  if (scenarios.includes("all")) {
    return SCENARIOS.filter((scenario) => canRank || !isRerank(scenario));
  }
  const chosen = scenarios.map((name) => {
    const scenario = SCENARIOS.find((candidate) => candidate.name === name);
    if (scenario) return scenario;
    throw new UsageError(
      `--scenarios takes all, or some of ${SCENARIO_NAMES.join(", ")}, not "${name}"`,
    );
  });
  const ranking = chosen.find(isRerank);
  if (ranking && !canRank) throw new UsageError(`${ranking.name} needs --rerank-model`);
  return [...new Set(chosen)];
}

async function measureTargets(
  texts: readonly string[],
  flags: BenchFlags,
  scenarios: readonly Scenario[],
): Promise<Report> {
  const named = { model: flags.model, rerankModel: flags.rerankModel };
  const [first, ...others] = texts.map((text): Target => ({ ...named, ...parseTarget(text) }));
  if (!first) throw new UsageError("--target needs a URL");
  const names = [first, ...others].map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new UsageError(`two targets have the name ${twice}`);
  const { rounds, seconds } = flags;
  return runBench({ targets: [first, ...others], scenarios, rounds, seconds, onRemark: remark });
}

async function measureOwnServer(
  flags: BenchFlags,
  scenarios: readonly Scenario[],
  env: Environment,
): Promise<Report> {
  const directoryOf = async (name: string) => (await namedModel(name, flags, env)).directory;
  const model = await directoryOf(flags.model ?? DEFAULT_MODEL);
  const reranker =
    flags.rerankModel === undefined ? undefined : await directoryOf(flags.rerankModel);
  await using servers = new AsyncDisposableStack();
  const start = async (cpuPrecision?: "f32" | "bf16") =>
    servers.use(await startOwnServer({ model, reranker, cpuPrecision, env })).target;
  const targets: [Target, ...Target[]] =
    flags.cpuPrecision === "bf16" ? [await start("f32"), await start("bf16")] : [await start()];
  const { rounds, seconds } = flags;
  return await runBench({ targets, scenarios, rounds, seconds, onRemark: remark });
}

function describeDistance({ texts, mean, max }: CosineDistance): string {
  const [usual, most] = [mean, max].map((distance) => distance.toExponential(1));
  return `cosine distance to f32 on ${texts} texts ${usual} in the mean, ${most} at most`;
}

function describe({ summary, targets, runs, machine }: Report, colour: boolean): string {
  const lines = targets.flatMap(({ target: { name, startupMs }, cosineDistance: apart }) => {
    const memory = runs.findLast((run) => run.target === name)?.memory;
    const facts = [
      ...(memory ? [`${memory.residentMb} MB resident, ${memory.peakMb} at most`] : []),
      ...(startupMs === undefined ? [] : [`first answer after ${(startupMs / 1000).toFixed(2)} s`]),
      ...(apart === undefined ? [] : [describeDistance(apart)]),
    ];
    return facts.length === 0 ? [] : [`${name}: ${facts.join("; ")}\n`];
  });
  const machineLine = `${machine.processor}, ${machine.cores} cores, ${machine.platform}\n`;
  return [cellsTable(summary, colour), ...lines, machineLine].join("");
}
