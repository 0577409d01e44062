/** What the server prints may be lost; what it answers may not. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, existsSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { fixture, temporaryDirectory } from "../checkpoints.ts";
import { until } from "../server.ts";

setDefaultTimeout(60_000);

const ROOT = resolve(import.meta.dir, "../..");

/** The writing end of a pipe that had a reader. */
function abandonedPipe(): number {
  const path = join(temporaryDirectory(), "pipe");
  Bun.spawnSync(["mkfifo", path]);
  const both = openSync(path, "r+"); // opening one end alone would wait for the other
  const end = openSync(path, "w");
  closeSync(both);
  return end;
}

async function healthy(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/health`, { keepalive: false });
  await response.text();
  return response.ok;
}

function freePort(): number {
  using listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  return listener.port;
}

/** Takes no byte, like a disk without space. Not on every system. */
const FULL = "/dev/full";

test.each([
  ["stdout", "gone"],
  ["stderr", "gone"],
  ...(existsSync(FULL)
    ? ([
        ["stdout", "full"],
        ["stderr", "full"],
      ] as const)
    : []),
] as const)("a %s that is %s does not stop the server", async (stream, why) => {
  const target = why === "full" ? openSync(FULL, "w") : abandonedPipe();
  const port = freePort();
  const flags = ["--port", String(port), "--log-level", "debug", "-m", fixture("bert-mean")];
  const child = Bun.spawn([process.execPath, "src/main.ts", "serve", ...flags], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: stream === "stdout" ? target : "ignore",
    stderr: stream === "stderr" ? target : "ignore",
  });
  closeSync(target);
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
      return healthy(port).catch(() => false);
    }, "the server never got ready");
    for (let i = 0; i < 3; i++) expect(await healthy(port)).toBe(true);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});
