/** `mlxcel show`: what a model on this machine is. */
import { join } from "node:path";
import { z } from "zod";
import { adapterBase } from "../hub/adapter-base.ts";
import { byteText } from "../hub/byte-text.ts";
import { lastUsed } from "../hub/last-use.ts";
import { type Manifest, readManifest } from "../hub/manifest.ts";
import { parseModelName } from "../hub/model-name.ts";
import { localStore } from "../hub/places.ts";
import { findModel } from "../hub/resolve.ts";
import { repositoryAt } from "../hub/store.ts";
import type { Environment } from "../native/environment.ts";
import { oneLine } from "../native/one-line.ts";
import { hubFlags, jsonFlag, storeFlags } from "./command-flags.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { commandHelp } from "./help.ts";
import { localTime } from "./local-time.ts";
import { type ModelReport, reportOf } from "./model-report.ts";
import { terminalColumns, writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { nearestStored } from "./stored-model.ts";
import { shortText } from "./table.ts";
import { UsageError } from "./usage-error.ts";

const schema = z.object({
  ...storeFlags,
  revision: hubFlags.revision,
  json: jsonFlag("lines"),
});

/** The table of its flags. */
export const SHOW: FlagTable<typeof schema> = {
  command: "mlxcel show",
  schema,
  flags: flagsOf(schema),
  takesWords: true,
};

export function showHelp(colour: boolean): string {
  return commandHelp(
    SHOW,
    {
      title: "tells what a model is, from its configuration",
      usage: [
        ["mlxcel show NAME", "a path, or OWNER/NAME that is here"],
        ["mlxcel show NAME --json", "for programs"],
      ],
    },
    colour,
  );
}

/** A model with what is known of its download. */
interface ShownModel extends ModelReport {
  readonly name: string;
  readonly manifest: Manifest | undefined;
  readonly lastUsed: Date | undefined;
}

/** The command. Returns the exit code. */
export async function show(args: readonly string[], env: Environment): Promise<number> {
  const { flags, words } = readCommandLine(SHOW, args, env);
  const [name, ...others] = words;
  if (name === undefined || others.length > 0) {
    throw new UsageError("show takes the name of one model; mlxcel list shows what is here");
  }
  const { modelsDir, revision } = flags;
  const found = findModel(name, { modelsDir, revision, env });
  if (!found) {
    const guess = nearestStored(name, localStore({ modelsDir, env }));
    throw new Error(`model ${name} is not on this machine; ${adviceOn(name, guess)}`);
  }
  const missingBase = found.base === undefined ? adapterBase(found.directory)?.name : undefined;
  if (missingBase !== undefined) {
    throw new Error(
      `${name} is an adapter of ${missingBase}, which is not on this machine; ${adviceOn(missingBase)}`,
    );
  }
  const store = localStore({ modelsDir, env });
  const repository = repositoryAt(store, found.directory);
  const model: ShownModel = {
    name: found.name,
    ...reportOf(found.directory, found.base),
    manifest: repository === undefined ? undefined : readManifest(join(store, repository)),
    lastUsed: repository === undefined ? undefined : lastUsed(store, repository),
  };
  await writeAnswer(flags.json ? jsonOf(model) : linesOf(model), undefined);
  return 0;
}

/** @param guess a model of the store with a similar name */
function adviceOn(name: string, guess?: string): string {
  if (parseModelName(name)?.repository.includes("/")) return `mlxcel pull ${name} downloads it`;
  return guess === undefined ? "mlxcel list shows what is" : `did you mean ${oneLine(guess)}?`;
}

function jsonOf({ manifest, lastUsed: used, ...model }: ShownModel): string {
  const { endpoint = null, revision = null, commit = null, downloadedAt = null } = manifest ?? {};
  const source = { endpoint, revision, commit, downloadedAt };
  const shown = { ...model, source, lastUsed: used?.toISOString() ?? null };
  return `${JSON.stringify(shown, null, 2)}\n`;
}

type Row = readonly [label: string, text: string];

const LABEL_COLUMNS = 14;

function linesOf({ manifest, lastUsed: used, ...model }: ShownModel): string {
  const { name, path, files } = model;
  const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const rows: Row[] = [
    ["model", name],
    ["path", path],
    ...(model.base === null ? [] : [["adapter of", model.base] as const]),
    ...checkpointRows(model),
    ...(manifest ? sourceRows(manifest) : []),
    ...(used ? [["last used", localTime(used)] as const] : []),
    ["files", `${files.length}, ${byteText(total)}`],
    ...files.map((file): Row => ["", `${byteText(file.sizeBytes).padStart(9)}  ${file.path}`]),
  ];
  return rows.map(([label, text]) => `${label.padEnd(LABEL_COLUMNS)}${oneLine(text)}\n`).join("");
}

function checkpointRows(report: ModelReport): Row[] {
  const { kind, family, architecture, dim, maxLength, pooling, normalized } = report;
  const isEmbedder = kind === "embedding";
  return [
    ["kind", kind === "chat" ? "chat; a Qwen3 reranker is served by --reranker-model" : kind],
    ["family", `${family}${architecture ? ` (${architecture})` : ""}`],
    ["weights", weightsText(report)],
    ...(dim === null ? [] : [["dim", String(dim)] as const]),
    ...(maxLength === null ? [] : [["max length", `${maxLength} tokens`] as const]),
    ...(isEmbedder
      ? [
          [
            "pooling",
            `${pooling ?? "the family's default"}, ${normalized ? "normalized (L2)" : "not normalized"}`,
          ] as const,
        ]
      : []),
    ...promptRows(report),
  ];
}

function weightsText({ dtype, parameters }: ModelReport): string {
  if (parameters === 0) return "none in safetensors, so it cannot be loaded";
  return `${dtype}${parameters === null ? "" : `, ${countText(parameters)} parameters`}`;
}

function promptRows({ prompts, defaultPrompt }: ModelReport): Row[] {
  return Object.entries(prompts).map(([name, text], i) => {
    const mark = name === defaultPrompt ? " (default)" : "";
    const shown = `${name}${mark}: ${JSON.stringify(text)}`;
    return [i === 0 ? "prompts" : "", shortText(shown, terminalColumns() - LABEL_COLUMNS)];
  });
}

function sourceRows({ endpoint, revision, commit, downloadedAt }: Manifest): Row[] {
  return [
    ["source", endpoint],
    ["revision", `${revision} (commit ${commit.slice(0, 12)})`],
    ["downloaded", localTime(new Date(downloadedAt))],
  ];
}

/** `22.7 M` */
function countText(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} G`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} M`;
  return count >= 1e3 ? `${(count / 1e3).toFixed(1)} k` : String(count);
}
