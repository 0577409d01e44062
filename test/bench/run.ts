/**
 * Measures this server beside its peers on the same machine, model and texts, in turns, and prints a Markdown table.
 * Nothing is asserted but that all of them give the same vectors and scores.
 *
 *     npm run bench -- [--scenarios a1,b1] [--rounds 3] [--seconds 5] [--json FILE]
 *                      [--gguf embedder.gguf] [--target name=URL …]
 *
 * sentence-transformers and ONNX Runtime, each behind FastAPI, and infinity are installed on first use;
 * MLXCEL_BENCH_PYTHON and MLXCEL_BENCH_INFINITY_PYTHON may name a Python that has the packages of requirements.txt and
 * of infinity-requirements.txt. A llama-server in PATH takes part, but for reranking, when --gguf
 * names the embedder of build/bench, converted to f32 by convert_hf_to_gguf.py of llama.cpp. Other servers, such as
 * text-embeddings-inference, take part as --target when they serve the models of build/bench.
 */
import { parseArgs } from "node:util";
import { DEFAULT_MODEL, findModel } from "../../src/hub/resolve.ts";
import { runBench, type Report } from "../../src/cli/bench/bench-run.ts";
import { startOwnServer } from "../../src/cli/bench/own-server.ts";
import { markdownTable } from "../../src/cli/bench/report.ts";
import { SCENARIOS } from "../../src/cli/bench/scenarios.ts";
import { parseTarget, type Target } from "../../src/cli/bench/target.ts";
import { writeModels } from "./models.ts";
import { peerPython } from "./peer-python.ts";
import { startInfinity, startLlama, startOnnxruntime, startSentenceTransformers } from "./peers.ts";

const { values } = parseArgs({
  options: {
    scenarios: { type: "string", default: SCENARIOS.map(({ name }) => name).join() },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "5" },
    model: { type: "string", default: DEFAULT_MODEL },
    gguf: { type: "string" },
    target: { type: "string", multiple: true, default: [] },
    json: { type: "string" },
  },
});

const chosen = values.scenarios.split(",");
const scenarios = SCENARIOS.filter(({ name }) => chosen.includes(name));
if (scenarios.length !== chosen.length) throw new Error(`--scenarios ${values.scenarios}`);

await using servers = new AsyncDisposableStack();

/** llama-server, where it can take part. */
async function llamaTargets(): Promise<Target[]> {
  const { gguf } = values;
  const lacks = [
    ...(Bun.which("llama-server") ? [] : ["no llama-server in PATH"]),
    ...(gguf === undefined ? ["no --gguf FILE"] : []),
  ];
  if (gguf === undefined || lacks.length > 0) {
    console.error(`llama-server takes no part: ${lacks.join(" and ")}`);
    return [];
  }
  return [servers.use(await startLlama(gguf)).target];
}

/** What is not measured per scenario. */
function otherRows({ targets, runs }: Report): string {
  const memories = targets.map(
    ({ target }) => runs.findLast((run) => run.target === target.name)?.memory,
  );
  const startups = targets.map(({ target: { startupMs } }) => startupMs);
  const rows = [
    ["resident memory after the runs, MB", ...memories.map((memory) => memory?.residentMb ?? "–")],
    ["most resident memory, MB", ...memories.map((memory) => memory?.peakMb ?? "–")],
    ["start to first vector, s", ...startups.map((ms) => (ms && (ms / 1000).toFixed(2)) ?? "–")],
  ];
  return rows.map((row) => `| ${row.join(" | ")} | |\n`).join("");
}

const python = peerPython("peers");
const found = findModel(values.model, { env: process.env });
if (!found) throw new Error(`--model ${values.model}: run mlxcel pull ${values.model} first`);
const models = writeModels(found.directory, python);
const { embedder: model, reranker } = models;
const ours = servers.use(await startOwnServer({ model, reranker, env: process.env }));
const peers = [
  servers.use(await startSentenceTransformers(python, models)).target,
  servers.use(await startOnnxruntime(python, models)).target,
  servers.use(await startInfinity(peerPython("infinity"), models)).target,
  ...(await llamaTargets()),
  ...values.target.map(parseTarget),
];
const report = await runBench({
  targets: [ours.target, ...peers],
  scenarios,
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  onRemark: (line) => console.error(line),
});
if (values.json !== undefined) await Bun.write(values.json, `${JSON.stringify(report, null, 2)}\n`);
const names = report.targets.map(({ target }) => target.name);
const { processor, cores, platform } = report.machine;
console.log(markdownTable(report.scenarios, names, report.summary) + otherRows(report));
console.log(
  `${processor}, ${cores} cores, ${platform}; medians of ${report.rounds} runs of ${report.seconds} s, ` +
    "p50 / p99 of the short texts in c; ~ marks figures without a quiet run.",
);
