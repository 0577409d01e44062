/** A store that its reader may not read in full. */
import { expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fixture, temporaryDirectory } from "../../test/fixtures/fixtures.ts";

const isRoot = process.getuid?.() === 0;
/** Root reads everything, so that it has to be somebody else who lists. */
const AS_NOBODY = isRoot ? ["setpriv", "--reuid=65534", "--clear-groups"] : [];

test.skipIf(isRoot && !Bun.which("setpriv"))(
  "directories that cannot be read are listed as unreadable, and all others as ever",
  async () => {
    const store = temporaryDirectory("store");
    chmodSync(store, 0o755);
    cpSync(fixture("bert-mean"), join(store, "owner/good"), { recursive: true });
    const locked = ["owner/locked", "secret"].map((name) => join(store, name));
    for (const directory of locked) mkdirSync(directory, { mode: 0o000 });
    const program = [process.execPath, join(import.meta.dir, "..", "main.ts")];
    const command = [...AS_NOBODY, ...program, "list", "--json", "--models-dir", store];
    const { stdout, stderr } = Bun.spawnSync(command, { env: { PATH: process.env["PATH"] } });
    for (const directory of locked) chmodSync(directory, 0o700);
    expect(stderr.toString()).toBe("");
    const denied = { kind: "unreadable", fault: expect.stringContaining("EACCES") };
    expect(JSON.parse(stdout.toString())).toEqual([
      expect.objectContaining({ name: "owner/good", kind: "embedding", family: "bert" }),
      expect.objectContaining({ name: "owner/locked", ...denied }),
      expect.objectContaining({ name: "secret", ...denied }),
    ]);
  },
);
