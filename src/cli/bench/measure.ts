/** Runs the scenarios on all targets in turn, so that whatever else happens on the machine hits all alike. */
import type { Agreement } from "./agreement.ts";
import { LoadGenerator, type Load, type LoadOutcome } from "./load.ts";
import { memoryOf, watchProcessor, type Memory, type ProcessorShares } from "./machine.ts";
import { isRerank, type BenchRequest, type RequestKind, type Scenario } from "./scenarios.ts";
import { bodyOf, urlOf, type Target } from "./target.ts";

/** One target under one scenario, once. */
export interface Run {
  readonly target: string;
  readonly scenario: string;
  /** From 0. */
  readonly round: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly seconds: number;
  /** Answered, of all groups. */
  readonly requests: number;
  readonly failures: number;
  readonly firstFailure?: string | undefined;
  /** Of the first group. */
  readonly requestsPerSecond: number;
  readonly textsPerSecond: number;
  readonly tokensPerSecond: number;
  /** Of the first group; null: it has no answer. */
  readonly latencyMs: Percentiles | null;
  /** Of the other group, where there is one. */
  readonly otherLatencyMs?: Percentiles | null;
  readonly processorShares: ProcessorShares;
  /** Something else took so much of the machine that the figures say little. null: not known. */
  readonly noisy: boolean | null;
  readonly memory?: Memory | undefined;
}

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

interface Plan {
  readonly agreements: readonly Agreement[];
  readonly scenarios: readonly Scenario[];
  readonly requests: ReadonlyMap<RequestKind, readonly BenchRequest[]>;
  readonly rounds: number;
  readonly seconds: number;
  readonly onRun: (run: Run) => void;
}

const MAX_OTHER_SHARE = 0.15;
const WARM_UP_REQUESTS = 3;

export async function measure(plan: Plan): Promise<Run[]> {
  using generator = new LoadGenerator();
  const runs: Run[] = [];
  for (const scenario of plan.scenarios) {
    const able = plan.agreements.filter(({ doesNotRank }) => !isRerank(scenario) || !doesNotRank);
    const targets = able.map(({ target }) => target);
    for (let round = 0; round < plan.rounds; round++) {
      for (const target of rotated(targets, round)) {
        const run = await measureOne(generator, plan, { target, scenario, round });
        plan.onRun(run);
        runs.push(run);
      }
    }
  }
  return runs;
}

/** The same list from another start. */
function rotated<T>(list: readonly T[], by: number): T[] {
  const start = list.length === 0 ? 0 : by % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}

interface Turn {
  readonly target: Target;
  readonly scenario: Scenario;
  readonly round: number;
}

async function measureOne(generator: LoadGenerator, plan: Plan, turn: Turn): Promise<Run> {
  const { target, scenario, round } = turn;
  const load = loadOf(plan, turn);
  await generator.run({ ...load, maxRequests: WARM_UP_REQUESTS });
  const startedAt = new Date().toISOString();
  const processorShares = watchProcessor(target.pids);
  const outcome = await generator.run(load);
  const shares = processorShares();
  return {
    target: target.name,
    scenario: scenario.name,
    round,
    startedAt,
    ...figures(outcome),
    processorShares: shares,
    noisy: shares.others === undefined ? null : shares.others > MAX_OTHER_SHARE,
    memory: memoryOf(target.pids),
  };
}

function loadOf(plan: Plan, { target, scenario }: Turn): Load {
  const groups = scenario.groups.map(({ clients, kind }) => {
    const requests = plan.requests.get(kind) ?? [];
    const [first] = requests;
    if (!first) throw new Error(`no requests of the kind ${kind}`);
    return {
      url: urlOf(first, target),
      clients,
      requests: requests.map((request) => ({
        body: bodyOf(request, target),
        texts: request.task === "embed" ? request.texts.length : request.documents.length,
        tokens: request.tokens,
      })),
    };
  });
  return { groups, seconds: plan.seconds * (scenario.lengthFactor ?? 1) };
}

function figures({ seconds, groups, failures, firstFailure }: LoadOutcome) {
  const [first, other] = groups;
  const total = (of: (group: (typeof groups)[number]) => number) =>
    groups.reduce((sum, group) => sum + of(group), 0);
  return {
    seconds,
    requests: total(({ latenciesMs }) => latenciesMs.length),
    failures,
    firstFailure,
    requestsPerSecond: (first?.latenciesMs.length ?? 0) / seconds,
    textsPerSecond: total(({ texts }) => texts) / seconds,
    tokensPerSecond: total(({ tokens }) => tokens) / seconds,
    latencyMs: percentiles(first?.latenciesMs ?? []),
    ...(other && { otherLatencyMs: percentiles(other.latenciesMs) }),
  };
}

function percentiles(latenciesMs: readonly number[]): Percentiles | null {
  if (latenciesMs.length === 0) return null;
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  // the nearest rank
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}
