/** A whole comparison: texts, agreement, measurements, summary. */
import { reasonOf } from "../../native/thrown.ts";
import { VERSION } from "../version.ts";
import { scoreAgreement, vectorAgreement, type Agreement } from "./agreement.ts";
import { CorpusWriter } from "./corpus.ts";
import { thisMachine, type Machine } from "./machine.ts";
import { measure, type Run } from "./measure.ts";
import { NetworkFault } from "./network-fault.ts";
import { summarise, type Cell } from "./report.ts";
import {
  isRerank,
  LONGEST_PAIR_TOKENS,
  requestsOf,
  sampleTexts,
  type BenchRequest,
  type Corpus,
  type RequestKind,
  type Scenario,
} from "./scenarios.ts";
import { countTokens, maxPairTokens, maxTokens, type Target } from "./target.ts";

interface BenchOptions {
  /** The first one counts the tokens, and the others must compute the same. */
  readonly targets: readonly [Target, ...Target[]];
  readonly scenarios: readonly Scenario[];
  readonly rounds: number;
  /** Of one run. */
  readonly seconds: number;
  /** Takes a line for people. */
  readonly onRemark: (line: string) => void;
}

/** All that was found. */
export interface Report {
  readonly version: string;
  readonly finishedAt: string;
  readonly machine: Machine;
  readonly rounds: number;
  readonly seconds: number;
  readonly targets: readonly Agreement[];
  readonly scenarios: readonly (Scenario & { readonly meanTokensPerRequest: readonly number[] })[];
  readonly summary: readonly Cell[];
  readonly runs: readonly Run[];
}

/** Where nothing says otherwise. */
const USUAL_MAX_TOKENS = 512;

/** @throws Error one line, when a target does not answer, or answers something else than the first one */
export async function runBench(options: BenchOptions): Promise<Report> {
  const { targets, onRemark } = options;
  const [first] = targets;
  const embedWriter = await writerFor(first, "embed");
  const base: Corpus = {
    embed: embedWriter,
    maxTokens: (await maxTokens(first)) ?? USUAL_MAX_TOKENS,
  };
  if (base.maxTokens < USUAL_MAX_TOKENS) {
    onRemark(
      `${first.name} reads at most ${base.maxTokens} tokens: the texts are kept that short, those of e1 and e8 too`,
    );
  }
  const sample = await compared(targets, base);
  const vectors = await vectorAgreement(targets, sample);
  const wantsRanking = options.scenarios.some(isRerank);
  const agreements = wantsRanking ? await scoreAgreement(vectors, sample.slice(0, 5)) : vectors;
  for (const line of agreements.flatMap(remarksOn)) onRemark(line);

  const ranker = agreements.find(({ scoreDifference }) => scoreDifference !== undefined)?.target;
  const scenarios = options.scenarios.filter((scenario) => ranker || !isRerank(scenario));
  if (scenarios.length === 0) throw new Error("no target ranks: nothing is left to measure");
  const corpus = { ...base, rerank: ranker && (await rerankCorpus(ranker, onRemark)) };
  const requests = await allRequests(scenarios, corpus);
  const { rounds, seconds } = options;
  const onRun = (run: Run) => onRemark(describeRun(run, rounds));
  const runs = await measure({ agreements, scenarios, requests, rounds, seconds, onRun });
  const names = targets.map(({ name }) => name);
  return {
    version: VERSION,
    finishedAt: new Date().toISOString(),
    machine: thisMachine(),
    rounds,
    seconds,
    targets: agreements,
    scenarios: scenarios.map((scenario) => ({
      ...scenario,
      meanTokensPerRequest: scenario.groups.map(({ kind }) => meanTokens(requests.get(kind) ?? [])),
    })),
    summary: summarise(scenarios, names, runs),
    runs,
  };
}

/** More texts where a figure is made of how their vectors differ. */
async function compared(targets: readonly Target[], corpus: Corpus): Promise<readonly string[]> {
  if (!targets.some(({ reducedPrecision }) => reducedPrecision)) return sampleTexts(corpus);
  const [request] = await requestsOf("batch64", corpus);
  return request?.task === "embed" ? request.texts : sampleTexts(corpus);
}

async function writerFor(target: Target, task: BenchRequest["task"]): Promise<CorpusWriter> {
  try {
    return await CorpusWriter.create((text) => countTokens(target, task, text));
  } catch (error) {
    if (error instanceof NetworkFault) throw error;
    const reason = reasonOf(error);
    const advice = "the first target counts the tokens: put one first that has /tokenize";
    throw new Error(`${reason} (${advice})`, { cause: error });
  }
}

async function rerankCorpus(ranker: Target, onRemark: BenchOptions["onRemark"]) {
  const most = (await maxPairTokens(ranker)) ?? USUAL_MAX_TOKENS;
  if (most < LONGEST_PAIR_TOKENS) {
    onRemark(
      `${ranker.name} reads at most ${most} tokens of a pair: the documents of d1 and d4 are kept that short`,
    );
  }
  return { writer: await writerFor(ranker, "rerank"), maxPairTokens: most };
}

async function allRequests(
  scenarios: readonly Scenario[],
  corpus: Corpus,
): Promise<Map<RequestKind, BenchRequest[]>> {
  const requests = new Map<RequestKind, BenchRequest[]>();
  for (const { kind } of scenarios.flatMap(({ groups }) => groups)) {
    if (!requests.has(kind)) requests.set(kind, await requestsOf(kind, corpus));
  }
  return requests;
}

function meanTokens(requests: readonly BenchRequest[]): number {
  return requests.reduce((sum, { tokens }) => sum + tokens, 0) / requests.length;
}

function remarksOn(agreement: Agreement) {
  const { target, vectorDifference, scoreDifference, doesNotRank } = agreement;
  const scores =
    scoreDifference === undefined ? "" : `, of scores ${scoreDifference.toExponential(1)}`;
  const largest = `largest difference of vectors ${vectorDifference.toExponential(1)}${scores}`;
  const lines = [`target ${target.name}: ${largest}`];
  return doesNotRank === undefined
    ? lines
    : [...lines, `target ${target.name} is left out of d1 and d4: ${doesNotRank}`];
}

function describeRun(run: Run, rounds: number): string {
  const { generator, others } = run.processorShares;
  const percent = (share: number | undefined) =>
    share === undefined ? "?" : `${(100 * share).toFixed(0)} %`;
  const speed = [
    `${run.requestsPerSecond.toFixed(1)} req/s`,
    `${run.tokensPerSecond.toFixed(0)} tokens/s`,
    `p50 ${run.latencyMs?.p50.toFixed(1) ?? "–"} ms`,
  ].join(", ");
  const noise = `other processes ${percent(others)}${run.noisy === true ? " (noisy)" : ""}`;
  const failed = run.failures > 0 ? `; ${run.failures} failed, first: ${run.firstFailure}` : "";
  const title = `${run.scenario} round ${run.round + 1}/${rounds} ${run.target}`;
  return `${title}: ${speed}; load generator ${percent(generator)}, ${noise}${failed}`;
}
