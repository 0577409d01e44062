import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder, vendorFolder } from "./pinned.ts";
import { diskFullError, saysDiskFull } from "./setup-error.ts";

/** How to run a command of the set-up. */
interface RunOptions {
  /** Name of the log that is kept when it fails. */
  readonly log: string;
  /** vendor/ by default: a Python there imports nothing by accident. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
}

/** A command that ended with a non-zero exit code; its whole output is in the file `log`. */
export class CommandError extends Error {
  constructor(
    readonly lines: readonly string[],
    readonly log: string,
  ) {
    super(lines.findLast((line) => line.trim() !== "")?.trim() ?? "no output");
  }

  /** The last line that matches, without its leading label, or the last line of all. */
  lastLine(pattern: RegExp): string {
    return this.lines.findLast((line) => pattern.test(line))?.trim() ?? this.message;
  }
}

/** Calls `onLine` with each line of a stream, without its end. */
export async function readLines(
  stream: ReadableStream<Uint8Array>,
  onLine: (line: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
    rest = parts.pop() ?? "";
    parts.forEach(onLine);
  }
  if (rest !== "") onLine(rest);
}

/**
 * Runs a command to its end and returns the lines of its output.
 * Throws CommandError when it fails, the disk-full SetupError when its output says so.
 */
export async function run(command: string[], options: RunOptions): Promise<string[]> {
  const lines: string[] = [];
  const onLine = (line: string) => {
    lines.push(line);
    options.onLine?.(line);
  };
  const child = Bun.spawn(command, {
    cwd: options.cwd ?? vendorFolder,
    env: { ...process.env, ...options.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  await Promise.all([readLines(child.stdout, onLine), readLines(child.stderr, onLine)]);
  if ((await child.exited) === 0) return lines;
  if (lines.some(saysDiskFull)) throw diskFullError(options.cwd ?? cacheFolder);
  const folder = join(cacheFolder, "logs");
  const log = join(folder, `${options.log}.log`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(log, `${command.join(" ")}\n${lines.join("\n")}\n`);
  throw new CommandError(lines, log);
}
