/** The native set comes out of the executable once, whatever happens meanwhile. */
import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { MODEL } from "../clients/reference.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { until } from "../server.ts";
import { builtExecutable, User } from "./user.ts";

beforeAll(async () => {
  await builtExecutable();
});

const EMBED = ["embed", "-m", fixture(MODEL), "-t", "a"];
const isRoot = process.getuid?.() === 0;

function cachedOf(user: User): string[] {
  return existsSync(user.cache) ? user.cached() : [];
}

test("later starts use what the first has unpacked", async () => {
  using user = new User();
  expect((await user.run(EMBED)).exitCode).toBe(0);
  const [folder = ""] = user.cached();
  const library = join(user.cache, folder, "libmlxc.so");
  const { ino, mtimeMs } = statSync(library);
  expect((await user.run(EMBED)).exitCode).toBe(0);
  expect(statSync(library)).toMatchObject({ ino, mtimeMs });
  expect(user.cached()).toEqual([folder]);
});

test("a start that is killed while it unpacks does no harm to the next", async () => {
  using user = new User();
  const killed = user.start(EMBED);
  await until(
    () => cachedOf(user).some((name) => name.includes(".tmp.")),
    "nothing is being unpacked",
  );
  killed.kill("SIGKILL");
  await killed.exited;
  expect(user.cached()).toEqual([expect.stringMatching(/^native-\w+\.tmp\.\d+\.0$/)]);
  expect(await user.run(EMBED)).toMatchObject({ exitCode: 0, stderr: "" });
  expect(user.cached()).toEqual([expect.stringMatching(/^native-\w+$/)]);
});

test("starts at the same time do no harm to each other", async () => {
  using user = new User();
  const outcomes = await Promise.all([1, 2, 3].map(() => user.run(EMBED)));
  for (const outcome of outcomes) expect(outcome).toMatchObject({ exitCode: 0, stderr: "" });
  expect(user.cached()).toEqual([expect.stringMatching(/^native-\w+$/)]);
});

/** Mounts a file system of its own for the time of `work`. */
async function onMount(folder: string, options: string, work: () => Promise<void>): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { exitCode, stderr } = Bun.spawnSync(
    ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
    { stderr: "pipe" },
  );
  if (exitCode !== 0) throw new Error(stderr.toString());
  try {
    await work();
  } finally {
    Bun.spawnSync(["umount", folder]);
  }
}

describe("one line names the way out of", () => {
  test("a cache that cannot be written", async () => {
    using user = new User();
    const refused = async () => {
      const { exitCode, stdout, stderr } = await user.run(EMBED);
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
      expect(stderr).toMatch(
        /^mlxcel: the native libraries cannot be unpacked into \/\S+ \((EROFS|EACCES)\); set MLXCEL_CACHE_DIR to a directory that can be written\n$/,
      );
      const elsewhere = join(user.work, "cache");
      expect((await user.run(EMBED, { MLXCEL_CACHE_DIR: elsewhere })).exitCode).toBe(0);
      expect(readdirSync(elsewhere)).toEqual([expect.stringMatching(/^native-\w+$/)]);
    };
    // Permissions do not bind root, a read-only file system does.
    if (isRoot) await onMount(user.cache, "ro", refused);
    else {
      mkdirSync(user.cache, { recursive: true });
      chmodSync(user.cache, 0o555);
      await refused();
    }
  });

  test.skipIf(!isRoot)("a full disk (skipped: only root can mount a small one)", async () => {
    using user = new User();
    await onMount(user.cache, "size=8m", async () => {
      const { exitCode, stderr } = await user.run(EMBED);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(
        /^mlxcel: the disk of \/\S+ is full: the native libraries need \d+ MB; free some space, or set MLXCEL_CACHE_DIR to a directory on another disk\n$/,
      );
      expect(user.cached()).toEqual([]);
    });
  });
});
