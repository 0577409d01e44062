/** `mlxcel list`: the models in the local store. */
import { z } from "zod";
import { byteText } from "../hub/byte-text.ts";
import { localStore } from "../hub/places.ts";
import { storedModels } from "../hub/store.ts";
import type { Environment } from "../native/environment.ts";
import { colourWanted } from "../serving/log.ts";
import { jsonFlag, storeFlags } from "./command-flags.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { commandHelp } from "./help.ts";
import { remark, writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { type StoredModel, storedModelNamed } from "./stored-model.ts";
import { tableText } from "./table.ts";

const schema = z.object({
  ...storeFlags,
  json: jsonFlag("a table"),
});

/** The table of its flags. */
export const LIST: FlagTable<typeof schema> = {
  command: "mlxcel list",
  schema,
  flags: flagsOf(schema),
  bareWord: "list shows all models; mlxcel show NAME shows one",
};

export function listHelp(colour: boolean): string {
  return commandHelp(
    LIST,
    {
      title: "shows the models in the local store",
      usage: [
        ["mlxcel list", "name, size, kind, family, last use"],
        ["mlxcel list --json", "with paths and revisions"],
      ],
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function list(args: readonly string[], env: Environment): Promise<number> {
  const { flags } = readCommandLine(LIST, args, env);
  const store = localStore({ modelsDir: flags.modelsDir, env });
  const models = storedModels(store).map((name) => storedModelNamed(name, store, env));
  if (flags.json) {
    await writeAnswer(`${JSON.stringify(models.map(asJson), null, 2)}\n`, undefined);
  } else if (models.length === 0) {
    remark(`the store ${store} is empty; mlxcel pull OWNER/NAME fills it`);
  } else {
    await writeAnswer(modelsTable(models, new Date(), colourWanted(process.stdout)), undefined);
  }
  return 0;
}

function asJson({ manifest, lastUsed, ...model }: StoredModel) {
  const { revision = null, commit = null } = manifest ?? {};
  return { ...model, lastUsed: lastUsed?.toISOString() ?? null, revision, commit };
}

function modelsTable(models: readonly StoredModel[], now: Date, colour: boolean): string {
  const columns = [
    { title: "name", align: "left" },
    { title: "size", align: "right" },
    { title: "kind", align: "left" },
    { title: "family", align: "left" },
    { title: "last used", align: "left" },
  ] as const;
  const rows = models.map(({ name, sizeBytes, kind, family, lastUsed }) => [
    name,
    byteText(sizeBytes),
    kind,
    family,
    lastUsed ? timeAgo(lastUsed, now) : "-",
  ]);
  return tableText(columns, rows, colour);
}

const STEPS = [
  { unit: "second", seconds: 1 },
  { unit: "minute", seconds: 60 },
  { unit: "hour", seconds: 3600 },
  { unit: "day", seconds: 86_400 },
] as const;

/** `3 hours ago`, in the largest unit that fits once. */
export function timeAgo(then: Date, now: Date): string {
  const seconds = Math.max(0, (now.getTime() - then.getTime()) / 1000);
  const { unit, seconds: length } = STEPS.findLast((step) => seconds >= step.seconds) ?? STEPS[0];
  const count = Math.floor(seconds / length);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}
