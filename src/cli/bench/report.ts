/** From single runs to the figures that are compared, as a table and as Markdown. */
import { tableText } from "../table.ts";
import type { Percentiles, Run } from "./measure.ts";
import type { Scenario } from "./scenarios.ts";

/** One target under one scenario: medians over its quiet runs, or over all where none was quiet. */
export interface Cell {
  readonly scenario: string;
  readonly target: string;
  /** That the medians are taken of. */
  readonly runs: number;
  readonly noisyRuns: number;
  /** The medians are of noisy runs. */
  readonly noisy: boolean;
  readonly requests: number;
  readonly failures: number;
  readonly requestsPerSecond: number;
  readonly textsPerSecond: number;
  readonly tokensPerSecond: number;
  readonly latencyMs: Percentiles | null;
  /** Of the scenario's figure, to the best of the other targets; null: there is none with an answer. */
  readonly ratio: number | null;
}

export function summarise(
  scenarios: readonly Scenario[],
  targets: readonly string[],
  runs: readonly Run[],
): Cell[] {
  return scenarios.flatMap((scenario) => {
    const cells = targets.flatMap((target) => {
      const own = runs.filter((run) => run.scenario === scenario.name && run.target === target);
      return own.length === 0 ? [] : [cellOf(scenario, target, own)];
    });
    const figures = cells.map((cell) => figureOf(scenario, cell));
    return cells.map((cell, i) => {
      const best = Math.max(0, ...figures.filter((_, other) => other !== i));
      return { ...cell, ratio: best > 0 ? (figures[i] ?? 0) / best : null };
    });
  });
}

function cellOf({ name }: Scenario, target: string, all: readonly Run[]): Omit<Cell, "ratio"> {
  const quiet = all.filter(({ noisy }) => noisy !== true);
  const runs = quiet.length > 0 ? quiet : all;
  const medianOf = (of: (run: Run) => number) => median(runs.map(of));
  const latencies = runs.flatMap(({ latencyMs }) => latencyMs ?? []);
  const percentile = (of: (latency: Percentiles) => number) => median(latencies.map(of));
  return {
    scenario: name,
    target,
    runs: runs.length,
    noisyRuns: all.length - quiet.length,
    noisy: quiet.length === 0,
    requests: sum(all, ({ requests }) => requests),
    failures: sum(all, ({ failures }) => failures),
    requestsPerSecond: medianOf((run) => run.requestsPerSecond),
    textsPerSecond: medianOf((run) => run.textsPerSecond),
    tokensPerSecond: medianOf((run) => run.tokensPerSecond),
    latencyMs:
      latencies.length === 0
        ? null
        : {
            p50: percentile(({ p50 }) => p50),
            p95: percentile(({ p95 }) => p95),
            p99: percentile(({ p99 }) => p99),
            max: Math.max(...latencies.map(({ max }) => max)),
          },
  };
}

/** What targets are ranked by. */
function figureOf(
  { figure }: Scenario,
  cell: Pick<Cell, "requestsPerSecond" | "tokensPerSecond">,
): number {
  return figure === "requests/s" ? cell.requestsPerSecond : cell.tokensPerSecond;
}

function sum(runs: readonly Run[], of: (run: Run) => number): number {
  return runs.reduce((total, run) => total + of(run), 0);
}

/** Of an even number the mean of the middle two. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
  return middle.reduce((total, value) => total + value / middle.length, 0);
}

const COLUMNS = [
  { title: "scenario", align: "left" },
  { title: "target", align: "left" },
  { title: "req/s", align: "right" },
  { title: "texts/s", align: "right" },
  { title: "tokens/s", align: "right" },
  { title: "p50 ms", align: "right" },
  { title: "p95 ms", align: "right" },
  { title: "p99 ms", align: "right" },
  { title: "ratio", align: "right" },
  { title: "failed", align: "right" },
] as const;

/** A line for each target under each scenario. */
export function cellsTable(cells: readonly Cell[], colour: boolean): string {
  const rows = cells.map((cell) => [
    cell.scenario,
    cell.target,
    `${cell.noisy ? "~" : ""}${shown(cell.requestsPerSecond)}`,
    shown(cell.textsPerSecond),
    shown(cell.tokensPerSecond),
    shown(cell.latencyMs?.p50),
    shown(cell.latencyMs?.p95),
    shown(cell.latencyMs?.p99),
    cell.ratio === null ? "" : cell.ratio.toFixed(2),
    cell.failures === 0 ? "" : String(cell.failures),
  ]);
  return tableText(COLUMNS, rows, colour);
}

/** Three digits are all that a measurement is good for. */
function shown(value: number | undefined): string {
  if (value === undefined) return "–";
  return value >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(3);
}

/**
 * A line for each scenario, a column for each target: its figure, and p50 / p99 in ms. The last column is the ratio of
 * the first target to the best of the others. `~` marks figures without a quiet run.
 */
export function markdownTable(
  scenarios: readonly Scenario[],
  targets: readonly string[],
  cells: readonly Cell[],
): string {
  const lines = scenarios.map((scenario) => {
    const of = (target: string) =>
      cells.find((cell) => cell.scenario === scenario.name && cell.target === target);
    const figures = targets.map((target) => {
      const cell = of(target);
      return cell ? markdownCell(scenario, cell) : "–";
    });
    const ratio = of(targets[0] ?? "")?.ratio?.toFixed(2) ?? "–";
    return row([`${scenario.name}: ${scenario.title}, ${scenario.figure}`, ...figures, ratio]);
  });
  const head = ["", ...targets, "ratio to the best peer"];
  return [row(head), row(head.map(() => "---")), ...lines].map((line) => `${line}\n`).join("");
}

function markdownCell(scenario: Scenario, cell: Cell): string {
  const failures = cell.failures === 0 ? "" : `, ${cell.failures} failed`;
  const { latencyMs } = cell;
  if (!latencyMs) return `failed${failures}`;
  const figure = shown(figureOf(scenario, cell));
  return `${cell.noisy ? "~" : ""}${figure} (${shown(latencyMs.p50)} / ${shown(latencyMs.p99)} ms${failures})`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
