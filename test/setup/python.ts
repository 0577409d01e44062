import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { CommandError, run } from "../../vendor/command.ts";
import { clientError } from "../../vendor/download.ts";
import { exclusively } from "../../src/hub/exclusive.ts";
import { isInstalled, writeStamp } from "../../vendor/install.ts";
import { cacheFolder } from "../../vendor/pinned.ts";
import { say, step } from "../../vendor/progress.ts";
import { requireVenv } from "../../vendor/requirements.ts";

const requirements = join(import.meta.dir, "requirements.txt");
const environment = join(import.meta.dir, "../.venv");

/** The interpreter that has the Python clients. */
export const python = join(environment, "bin/python");

/**
 * Value of TIKTOKEN_CACHE_DIR with which tiktoken finds cl100k_base offline: the table that
 * llama-index-core ships.
 */
export function tiktokenCacheFolder(): string {
  const tables = "lib/python3.*/site-packages/llama_index/core/_static/tiktoken_cache";
  const [folder] = new Bun.Glob(tables).scanSync({ cwd: environment, onlyFiles: false });
  if (folder === undefined) throw new Error(`${environment} has no ${tables}; run npm test`);
  return join(environment, folder);
}

async function install(): Promise<void> {
  // A virtual environment keeps its own path, so it is made in place and marked when whole.
  await rm(environment, { recursive: true, force: true });
  const pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check"];
  const options = ["--only-binary=:all:", "--no-deps", "--retries", "2", "--timeout", "30"];
  const pins = readFileSync(requirements, "utf8").match(/^[^#\s].*$/gm)?.length ?? 1;
  await step("installing the Python clients", async (report) => {
    let collected = 0;
    try {
      await run(["python3", "-m", "venv", environment], { log: "venv" });
      await run([python, ...pip, ...options, "--progress-bar", "off", "-r", requirements], {
        log: "pip-clients",
        onLine: (line) => {
          // pip fetches everything first, then unpacks it without a word: about half and half.
          if (line.startsWith("Collecting ")) report(++collected / pins / 2);
        },
      });
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      throw clientError("pip", "the Python clients", error);
    }
  });
}

/** Makes sure that test/.venv holds the pinned Python clients. Throws SetupError when it cannot. */
export async function ensurePython(): Promise<void> {
  const key = createHash("sha256").update(readFileSync(requirements)).digest("hex");
  if (isInstalled(environment, key)) return;
  requireVenv();
  await exclusively(
    join(cacheFolder, "python.lock"),
    async () => {
      if (isInstalled(environment, key)) return;
      await install();
      await writeStamp(environment, key);
    },
    () => say("waiting for another set-up of the Python clients …"),
  );
}
