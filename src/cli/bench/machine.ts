/** Processor time and memory, as far as the system tells: Linux only. */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";

/** The unit of /proc. */
const TICKS_PER_SECOND = 100;
const IDLE_COLUMNS: ReadonlySet<number> = new Set([3, 4]); // idle, iowait
/** user nice system idle iowait irq softirq steal: guests' time is within user's. */
const COLUMNS = 8;

/** Processor time of all cores so far. */
interface ProcessorTime {
  readonly busySeconds: number;
  readonly totalSeconds: number;
}

function processorTime(): ProcessorTime | undefined {
  if (!existsSync("/proc/stat")) return undefined;
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n", 1);
  const columns = line
    .trim()
    .split(/\s+/)
    .slice(1, 1 + COLUMNS)
    .map(Number);
  const sum = (keep: (column: number) => boolean) =>
    columns.reduce((ticks, value, i) => ticks + (keep(i) ? value : 0), 0) / TICKS_PER_SECOND;
  return {
    busySeconds: sum((column) => !IDLE_COLUMNS.has(column)),
    totalSeconds: sum(() => true),
  };
}

/** Processor time of all threads of these processes; undefined where it is not known. */
function secondsOf(pids: readonly number[]): number | undefined {
  if (pids.length === 0 || !existsSync("/proc/stat")) return undefined;
  let ticks = 0;
  for (const pid of pids) {
    const path = `/proc/${pid}/stat`;
    if (!existsSync(path)) return undefined; // it ended: what it sends shows up as failures
    const text = readFileSync(path, "utf8");
    // behind the name, which may hold blanks and brackets
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS_PER_SECOND;
}

export interface Memory {
  readonly residentMb: number;
  /** The most since the process began. */
  readonly peakMb: number;
}

/** Memory of these processes together, in 10^6 bytes; undefined where it is not known. */
export function memoryOf(pids: readonly number[]): Memory | undefined {
  if (pids.length === 0) return undefined;
  let [residentMb, peakMb] = [0, 0];
  for (const pid of pids) {
    const path = `/proc/${pid}/status`;
    if (!existsSync(path)) return undefined;
    const status = readFileSync(path, "utf8");
    residentMb += megabytes(status, "VmRSS");
    peakMb += megabytes(status, "VmHWM");
  }
  return { residentMb: Math.round(residentMb), peakMb: Math.round(peakMb) };
}

function megabytes(status: string, field: string): number {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1];
  return (Number(kib ?? 0) * 1024) / 1e6;
}

/** Shares of all cores over a span of time, from 0 to 1. */
export interface ProcessorShares {
  /** This process with all its threads: what generating the load costs. */
  readonly generator?: number | undefined;
  readonly server?: number | undefined;
  /** Everything else: the noise. */
  readonly others?: number | undefined;
  readonly serverSeconds?: number | undefined;
}

/** Starts to watch; the function that it returns ends it. */
export function watchProcessor(pids: readonly number[]): () => ProcessorShares {
  const before = { machine: processorTime(), server: secondsOf(pids), own: process.cpuUsage() };
  return () => {
    const own = process.cpuUsage(before.own);
    const ownSeconds = (own.user + own.system) / 1e6;
    const machine = processorTime();
    const server = secondsOf(pids);
    if (!machine || !before.machine) return {};
    const totalSeconds = machine.totalSeconds - before.machine.totalSeconds;
    if (totalSeconds === 0) return {}; // too short for the clock of /proc
    const share = (seconds: number) => Math.max(0, seconds) / totalSeconds;
    const generator = share(ownSeconds);
    if (server === undefined || before.server === undefined) return { generator };
    const serverSeconds = server - before.server;
    const busySeconds = machine.busySeconds - before.machine.busySeconds;
    return {
      generator,
      server: share(serverSeconds),
      others: share(busySeconds - serverSeconds - ownSeconds),
      serverSeconds,
    };
  };
}

export interface Machine {
  readonly platform: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGb: number;
}

export function thisMachine(): Machine {
  return {
    platform: `${process.platform}-${process.arch}`,
    processor: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1e9),
  };
}
