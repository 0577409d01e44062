/** `mlxcel rm`: deletes models from the local store. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { byteText } from "../hub/byte-text.ts";
import { parseModelName } from "../hub/model-name.ts";
import { localStore } from "../hub/places.ts";
import { findModel } from "../hub/resolve.ts";
import { linkTarget, partialDirectory, removeStored, sizeOf, storedModels } from "../hub/store.ts";
import type { Environment } from "../native/environment.ts";
import { oneLine } from "../native/one-line.ts";
import { storeFlags } from "./command-flags.ts";
import { flag, flagsOf, type FlagTable } from "./flag-table.ts";
import { commandHelp } from "./help.ts";
import { remark } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { nearestStored } from "./stored-model.ts";
import { UsageError } from "./usage-error.ts";
import { onOff } from "./values.ts";

const schema = z.object({
  ...storeFlags,
  yes: flag(onOff(), { group: "Deleting", aliases: ["-y"], noEnv: true, help: "Do not ask." }),
});

/** The table of its flags. */
export const RM: FlagTable<typeof schema> = {
  command: "mlxcel rm",
  schema,
  flags: flagsOf(schema),
  takesWords: true,
};

export function rmHelp(colour: boolean): string {
  return commandHelp(
    RM,
    {
      title: "deletes models from the local store",
      usage: [
        ["mlxcel rm NAME...", "asks first; begun downloads go too"],
        ["mlxcel rm NAME... --yes", "for scripts"],
      ],
      closing: "mlxcel list shows the names. The Hugging Face cache is never changed.",
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function rm(args: readonly string[], env: Environment): Promise<number> {
  const { flags, words } = readCommandLine(RM, args, env);
  if (words.length === 0) throw new UsageError("nothing to delete: give the name of a model");
  const store = localStore({ modelsDir: flags.modelsDir, env });
  const repositories = words.map((name) => storedRepository(name, store, env));
  if (!flags.yes && !process.stdin.isTTY) {
    throw new UsageError("there is nobody to ask: give --yes to delete");
  }
  for (const repository of repositories) {
    const extent = extentOf(store, repository);
    if (!flags.yes && !confirm(oneLine(`delete ${repository}, ${extent}?`))) continue;
    await removeStored(store, repository);
    remark(`${repository} is deleted, ${extent}`);
  }
  return 0;
}

/** What is lost with it: of a link nothing but the link. */
function extentOf(store: string, repository: string): string {
  const directory = join(store, repository);
  const begunBytes = sizeOf(partialDirectory(store, repository));
  const target = linkTarget(directory);
  if (target === undefined) return byteText(sizeOf(directory) + begunBytes);
  return `a link to ${target}${begunBytes > 0 ? `, and ${byteText(begunBytes)} of a download` : ""}`;
}

/** @throws Error where the name is not one of the store's */
function storedRepository(name: string, store: string, env: Environment): string {
  const stored = storedModels(store);
  if (stored.includes(name)) return name;
  const wanted = parseModelName(name);
  if (wanted?.gguf !== undefined) {
    throw new UsageError(
      `${name}: files are not deleted one by one; mlxcel rm ${wanted.repository} deletes all`,
    );
  }
  const isBegun = wanted !== undefined && existsSync(partialDirectory(store, wanted.repository));
  if (wanted && (stored.includes(wanted.repository) || isBegun)) return wanted.repository;
  const elsewhere = wanted && findModel(name, { modelsDir: store, env })?.directory;
  if (elsewhere !== undefined) {
    throw new Error(`${name} is not in the store but at ${elsewhere}, which is left alone`);
  }
  const guess = nearestStored(name, store);
  const advice = guess ? `did you mean ${oneLine(guess)}?` : "mlxcel list shows what is";
  throw new Error(`${name} is not in the store ${store}; ${advice}`);
}
