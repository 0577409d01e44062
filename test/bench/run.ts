/**
 * Measures this server beside sentence-transformers on the same machine, model and texts, interleaved, and prints a
 * Markdown table. Nothing is asserted but that both give the same vectors.
 *
 *     npm run bench [-- --rounds 3 --seconds 5]
 */
import { parseArgs } from "node:util";
import { passages, shortQueries } from "./corpus.ts";
import { peerPython } from "./peer-python.ts";
import { embed, freePort, residentMb, startTarget, type Target } from "./target.ts";

interface Scenario {
  readonly name: string;
  readonly clients: number;
  readonly inputs: readonly (string | string[])[];
  readonly textsPerRequest: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "5" },
    model: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const secondsPerRun = Number(values.seconds);
const modelDirectory =
  values.model ??
  `${process.env["HOME"]}/.cache/mlxcel/models/sentence-transformers/all-MiniLM-L6-v2`;

const queries = shortQueries(4096);
const texts = passages(512);
const batches = Array.from({ length: 16 }, (_, i) => texts.slice(i * 32, (i + 1) * 32));
const scenarios: readonly Scenario[] = [
  { name: "1 short text, 1 client", clients: 1, inputs: queries, textsPerRequest: 1 },
  { name: "1 short text, 32 clients", clients: 32, inputs: queries, textsPerRequest: 1 },
  { name: "32 passages, 1 client", clients: 1, inputs: batches, textsPerRequest: 32 },
];

/** Embeddings per second over one run. */
async function measure(target: Target, scenario: Scenario): Promise<number> {
  const startedAt = performance.now();
  const endsAt = startedAt + secondsPerRun * 1000;
  let next = 0;
  let requests = 0;
  const client = async () => {
    while (performance.now() < endsAt) {
      const input = scenario.inputs[next++ % scenario.inputs.length];
      if (input === undefined) throw new Error("the scenario has no inputs");
      await embed(target.url, input);
      requests++;
    }
  };
  await Promise.all(Array.from({ length: scenario.clients }, client));
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  return (requests * scenario.textsPerRequest) / elapsedSeconds;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Both servers must compute the same thing, or their speeds can't be compared. */
async function checkAgreement(ours: Target, peer: Target): Promise<number> {
  const sample = [...queries.slice(0, 4), ...texts.slice(0, 2)];
  const [a, b] = await Promise.all([embed(ours.url, sample), embed(peer.url, sample)]);
  const difference = Math.max(
    ...a.flatMap((vector, i) => vector.map((x, j) => Math.abs(x - (b[i]?.[j] ?? Number.NaN)))),
  );
  if (!(difference < 1e-4)) throw new Error(`the vectors differ by ${difference}`);
  return difference;
}

const python = peerPython();
const root = new URL("../../", import.meta.url).pathname;
const ourPort = freePort();
const ours = await startTarget(
  "mlxcel",
  [
    process.execPath,
    `${root}src/main.ts`,
    "serve",
    "--port",
    `${ourPort}`,
    "--embedding-model",
    modelDirectory,
    "--embedding-queue-depth",
    "512",
    "--log-level",
    "error",
  ],
  ourPort,
);
const peerPort = freePort();
const peer = await startTarget(
  "sentence-transformers",
  [python, `${root}test/bench/sentence_transformers_server.py`, `${peerPort}`, modelDirectory],
  peerPort,
);

try {
  const difference = await checkAgreement(ours, peer);
  const rates = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    for (const scenario of scenarios) {
      for (const target of round % 2 === 0 ? [ours, peer] : [peer, ours]) {
        const rate = await measure(target, scenario);
        const key = `${target.name} ${scenario.name}`;
        rates.set(key, [...(rates.get(key) ?? []), rate]);
        console.error(`round ${round + 1}/${rounds}  ${key}: ${rate.toFixed(1)} embeddings/s`);
      }
    }
  }
  const rateOf = (target: Target, scenario: Scenario) =>
    median(rates.get(`${target.name} ${scenario.name}`) ?? []);
  console.log("| | mlxcel | sentence-transformers | ratio |\n|---|---|---|---|");
  for (const scenario of scenarios) {
    const [a, b] = [rateOf(ours, scenario), rateOf(peer, scenario)];
    console.log(
      `| ${scenario.name}, embeddings/s | ${a.toFixed(0)} | ${b.toFixed(0)} | ${(a / b).toFixed(2)} |`,
    );
  }
  console.log(
    `| resident memory after the runs, MB | ${residentMb(ours.pid)} | ${residentMb(peer.pid)} | |`,
  );
  console.log(
    `| start to first answer, s | ${(ours.startupMs / 1000).toFixed(2)} | ${(peer.startupMs / 1000).toFixed(2)} | |`,
  );
  console.log(`\nLargest difference between their vectors: ${difference.toExponential(1)}.`);
} finally {
  await Promise.all([ours.stop(), peer.stop()]);
}
