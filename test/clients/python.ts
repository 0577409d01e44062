import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { python, tiktokenCacheFolder } from "../setup/python.ts";

/** Python on a cold disk takes its time to import a client. */
export const PYTHON_TIMEOUT_MS = 120_000;

/** What a Python client tells its user when it raises; see failure.py. */
export const Failure = z.strictObject({
  kind: z.string(),
  message: z.string(),
  status: z.number().nullable(),
  code: z.string().nullable(),
  param: z.string().nullable(),
});

/** Runs a script of this folder in the environment of the Python clients: JSON in, JSON out. */
export async function runPython(script: string, asked: unknown): Promise<unknown> {
  const answer: unknown = JSON.parse(await runScript(join(import.meta.dir, script), asked));
  return answer;
}

/** Runs a script in the environment of the Python clients: JSON in, text out. */
export async function runScript(path: string, asked: unknown): Promise<string> {
  if (!existsSync(python)) throw new Error("the Python clients are not installed; run npm test");
  // No key, proxy or tracing setting of the person who runs the tests reaches the clients. -B: no
  // compiled files beside the scripts.
  const child = Bun.spawn([python, "-B", path], {
    env: { TIKTOKEN_CACHE_DIR: tiktokenCacheFolder(), NO_PROXY: "127.0.0.1" },
    stdin: Buffer.from(JSON.stringify(asked)),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${path} failed:\n${stderr}`);
  return stdout;
}
