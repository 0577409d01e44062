import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../test/server.ts";

setDefaultTimeout(60_000);

const root = join(import.meta.dir, "..");

test("an unknown command of the bootstrap is one line and exit code 1", () => {
  const { exitCode, stderr } = Bun.spawnSync([
    "node",
    join(root, "vendor/bootstrap.mjs"),
    "nonsense",
  ]);
  expect(stderr.toString()).toBe(
    "mlxcel set-up: usage: node vendor/bootstrap.mjs start|test|test-arm64|build [flags]\n",
  );
  expect(exitCode).toBe(1);
});

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Everything that runs; what has ended but was not collected by its parent does not count. */
function processes(): Process[] {
  const { stdout } = Bun.spawnSync(["ps", "-eo", "pid=,ppid=,stat=,args="]);
  return [...stdout.toString().matchAll(/^ *(\d+) +(\d+) +([^Z\s]\S*) +(.*)$/gm)].map(
    ([, pid, parent, , command = ""]) => ({ pid: Number(pid), parent: Number(parent), command }),
  );
}

/** A process and all that it started, it first. */
function family(pid: number): Process[] {
  const all = processes();
  const below = (parent: number): Process[] =>
    all.filter((each) => each.parent === parent).flatMap((each) => [each, ...below(each.pid)]);
  return [...all.filter((each) => each.pid === pid), ...below(pid)];
}

/** `npm start` with a small model, up to the line that tells its address. */
async function npmStart(): Promise<{ npm: Bun.Subprocess; started: Process[] }> {
  const model = "test/fixtures/bert-mean";
  const npm = Bun.spawn(["npm", "start", "--", "--port", "0", "--embedding-model", model], {
    cwd: root,
    env: { ...process.env, INIT_CWD: root },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) output += decoder.decode(bytes, { stream: true });
  };
  void read(npm.stdout);
  void read(npm.stderr);
  await until(() => {
    if (npm.exitCode !== null) throw new Error(`npm start ended: ${output}`);
    return /http:\/\/127\.0\.0\.1:\d+/.test(output);
  }, "the server never told its address");
  return { npm, started: family(npm.pid) };
}

describe("npm start ends with everything that it started", () => {
  test.each([
    ["npm", "SIGTERM"],
    ["npm", "SIGINT"],
    ["npm", "SIGHUP"],
    ["npm", "SIGKILL"],
    ["bootstrap.mjs", "SIGTERM"],
    ["bootstrap.mjs", "SIGINT"],
    ["bootstrap.mjs", "SIGHUP"],
    ["bootstrap.mjs", "SIGKILL"],
  ] as const)("when %s gets %s", async (name, signal) => {
    const { npm, started } = await npmStart();
    expect(started.map(({ command }) => command).join("\n")).toContain("src/main.ts");
    const target = name === "npm" ? npm.pid : started.find(isBootstrap)?.pid;
    process.kill(target ?? -1, signal);
    const pids = new Set(started.map(({ pid }) => pid));
    const left = () => processes().filter(({ pid }) => pids.has(pid));
    await until(() => left().length === 0, "processes are left", 20_000);
    await npm.exited;
  });
});

function isBootstrap({ command }: Process): boolean {
  return /^\S*node \S*bootstrap\.mjs start/.test(command);
}

test("the one lockfile names no registry", () => {
  const lockfile = readFileSync(join(root, "package-lock.json"), "utf8");
  expect(lockfile).toContain('"integrity"');
  expect(lockfile).not.toMatch(/"resolved"|https?:\/\/[^"]*registry/);
});

test("every npm dependency is pinned to one version", async () => {
  const { dependencies, devDependencies, optionalDependencies } = await Bun.file(
    join(root, "package.json"),
  ).json();
  const versions = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(String(version)))).toEqual([]);
});
