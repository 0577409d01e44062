import { beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../package.json";
import { temporaryDirectory } from "../test/fixtures/fixtures.ts";
import { commitOf } from "./commit.ts";

const folder = temporaryDirectory("commit");

function git(...args: string[]): string {
  const identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  const { stdout, exitCode } = Bun.spawnSync(["git", ...identity, ...args], { cwd: folder });
  if (exitCode !== 0) throw new Error(`git ${args.join(" ")} failed`);
  return stdout.toString().trim();
}

beforeEach(() => {
  git("init", "--quiet");
  writeFileSync(join(folder, "file"), String(performance.now()));
  git("add", ".");
  git("commit", "--quiet", "--message", "x");
});

test("an executable tells the commit that it was built from", async () => {
  const commit = git("rev-parse", "HEAD").slice(0, 9);
  expect(await commitOf(folder)).toBe(commit);
  writeFileSync(join(folder, "other"), "");
  expect(await commitOf(folder)).toBe(`${commit}.modified`);
  git("clean", "--quiet", "--force");
});

test("the tag of a release needs no commit", async () => {
  git("tag", `v${version}`);
  expect(await commitOf(folder)).toBeUndefined();
});

test("without a repository there is none", async () => {
  expect(await commitOf("/")).toBeUndefined();
});
