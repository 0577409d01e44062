import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");

test("an unknown command of the bootstrap is one line and exit code 1", () => {
  const { exitCode, stderr } = Bun.spawnSync([
    "node",
    join(root, "vendor/bootstrap.mjs"),
    "nonsense",
  ]);
  expect(stderr.toString()).toBe(
    "mlxcel set-up: usage: node vendor/bootstrap.mjs start|test [flags]\n",
  );
  expect(exitCode).toBe(1);
});

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
