/** What the commands without a server write: the answer to stdout or a file, remarks to stderr. */
import { countOf, Progress } from "./progress.ts";

/** Writes the answer; nothing else goes to stdout. */
export async function writeAnswer(
  answer: string | Uint8Array,
  path: string | undefined,
): Promise<void> {
  await Bun.write(path === undefined ? Bun.stdout : Bun.file(path), answer);
}

/** JSON text as a line. */
export function withNewline(json: Uint8Array): Uint8Array {
  return Buffer.concat([json, Buffer.from("\n")]);
}

/** Runs something long over a file's lines with its progress on stderr. */
export async function withProgress<T>(
  noun: string,
  total: number,
  run: (onProgress: (done: number) => void) => Promise<T>,
): Promise<T> {
  const progress = new Progress({ stream: process.stderr, unit: countOf(noun), total });
  try {
    return await run((done) => progress.update(done));
  } finally {
    progress.end();
  }
}

export function remark(text: string): void {
  process.stderr.write(`mlxcel: ${text}\n`);
}

/** The columns of the terminal, or a common width where the table goes to a file. */
export function terminalColumns(): number {
  return process.stdout.columns || 100;
}
