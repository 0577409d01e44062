/** `mlxcel arch`: the families of models that load. */
import { z } from "zod";
import type { FamilyDescription } from "../models/describe-families.ts";
import type { Environment } from "../native/environment.ts";
import { colourWanted } from "../serving/log.ts";
import { jsonFlag } from "./command-flags.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { tableText } from "./table.ts";

const schema = z.object({
  json: jsonFlag("a table"),
  help: flagsSchema.shape.help,
});

/** The table of its flags. */
export const ARCH: FlagTable<typeof schema> = {
  command: "mlxcel arch",
  schema,
  flags: flagsOf(schema),
  bareWord: "arch shows all families; mlxcel show NAME shows a model",
};

export function archHelp(colour: boolean): string {
  return commandHelp(
    ARCH,
    {
      title: "shows the families of models that load",
      usage: [
        ["mlxcel arch", "model_type in config.json, and what it can do"],
        ["mlxcel arch --json", "the same for programs"],
      ],
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function arch(args: readonly string[], env: Environment): Promise<number> {
  const { flags } = readCommandLine(ARCH, args, env);
  const families = await describedFamilies();
  const text = flags.json
    ? `${JSON.stringify(families, null, 2)}\n`
    : familiesText(families, process.stdout.columns, colourWanted(process.stdout));
  await writeAnswer(text, undefined);
  return 0;
}

const COLUMNS: readonly (readonly [title: string, cell: (family: FamilyDescription) => string])[] =
  [
    ["model_type", ({ modelType }) => modelType],
    ["kinds", ({ kinds }) => kinds.join(", ")],
    ["pooling", ({ defaultPooling }) => defaultPooling],
    ["formats", ({ formats }) => formats.join(", ")],
    ["max length", ({ lengthLimit }) => lengthLimit],
    ["quantised", ({ quantised }) => yesOrNo(quantised)],
    ["images", ({ images }) => yesOrNo(images)],
    ["published as", ({ publishedAs }) => publishedAs],
  ];

/** A table; a paragraph per family on a terminal of fewer columns. */
export function familiesText(
  families: readonly FamilyDescription[],
  terminalWidth: number | undefined,
  colour: boolean,
): string {
  const table = tableText(
    COLUMNS.map(([title]) => ({ title, align: "left" })),
    families.map((family) => COLUMNS.map(([, cell]) => cell(family))),
    colour,
  );
  const width = Math.max(...table.split("\n").map((line) => Bun.stringWidth(line)));
  if (terminalWidth === undefined || width <= terminalWidth) return table;
  return families.map((family) => familyParagraph(family, colour)).join("\n");
}

function familyParagraph(family: FamilyDescription, colour: boolean): string {
  const [, ...others] = COLUMNS;
  const indent = 2;
  const column = Math.max(...others.map(([title]) => title.length)) + indent;
  const lines = others.map(([title, cell]) => `${title.padEnd(column)}${cell(family)}`);
  const name = colour ? `\u001b[1m${family.modelType}\u001b[22m` : family.modelType;
  return [name, ...lines.map((line) => " ".repeat(indent) + line)]
    .map((line) => `${line}\n`)
    .join("");
}

/** The README's table, generated from the registry. */
export async function familiesMarkdown(): Promise<string> {
  const families = await describedFamilies();
  const lines = families.map((family) => COLUMNS.map(([, cell]) => cell(family)));
  const rows = lines.map(([modelType, ...cells]) => [`\`${modelType}\``, ...cells].join(" | "));
  return [
    `| ${COLUMNS.map(([title]) => title).join(" | ")} |`,
    `|${"---|".repeat(COLUMNS.length)}`,
    ...rows.map((row) => `| ${row} |`),
  ].join("\n");
}

/** Imported late: the families open the native library, which the help of this command does without. */
async function describedFamilies(): Promise<readonly FamilyDescription[]> {
  const { describeFamilies } = await import("../models/describe-families.ts");
  return describeFamilies();
}

function yesOrNo(answer: boolean): string {
  return answer ? "yes" : "no";
}
