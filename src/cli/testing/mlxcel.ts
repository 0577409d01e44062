import { join } from "node:path";

const MAIN = join(import.meta.dir, "..", "..", "main.ts");

/** Runs the real program to its end with these variables, without the settings of the person who runs the tests. */
export async function mlxcel(
  args: readonly string[],
  stdin: string | Uint8Array<ArrayBuffer> = "",
  variables: Readonly<Record<string, string>> = {},
) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    stdin: typeof stdin === "string" ? Buffer.from(stdin) : stdin,
    stdout: "pipe",
    stderr: "pipe",
    // threads of OpenBLAS that wait for a busy core make tiny models 100 times slower
    env: { PATH: process.env["PATH"], OPENBLAS_NUM_THREADS: "1", ...variables },
  });
  const [bytes, stderr, code] = await Promise.all([
    child.stdout.bytes(),
    child.stderr.text(),
    child.exited,
  ]);
  return { bytes, stdout: new TextDecoder().decode(bytes), stderr, code };
}
