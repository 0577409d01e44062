import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exclusively } from "./exclusive.ts";

let folder: string;
let lockFile: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mlxcel-lock-"));
  lockFile = join(folder, "set-up.lock");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A process that holds the lock until it is killed. */
async function startHolder() {
  const program = `
    import { exclusively } from ${JSON.stringify(join(import.meta.dir, "exclusive.ts"))};
    await exclusively(${JSON.stringify(lockFile)}, async () => {
      console.log("held");
      await Bun.sleep(60_000);
    });
  `;
  const holder = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" });
  const { value } = await holder.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("held\n");
  return holder;
}

test("work waits for the process that holds the lock, whose death frees it", async () => {
  const holder = await startHolder();
  const order: string[] = [];
  await exclusively(
    lockFile,
    async () => {
      order.push("work");
    },
    () => {
      order.push("waiting");
      holder.kill("SIGKILL");
    },
  );
  await holder.exited;
  expect(order).toEqual(["waiting", "work"]);
});

test("work that throws frees the lock", async () => {
  const failed = exclusively(lockFile, async () => {
    throw new Error("no compiler");
  });
  expect(failed).rejects.toThrow("no compiler");
  await failed.catch(() => undefined);
  expect(await exclusively(lockFile, async () => "next")).toBe("next");
});
