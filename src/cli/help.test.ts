import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { spellings } from "./flag-table.ts";
import { FLAGS, VARIABLES } from "./flags.ts";
import { embedHelp } from "./embed.ts";
import { flagsMarkdown, helpText } from "./help.ts";
import { listHelp } from "./list.ts";
import { pullHelp } from "./pull.ts";
import { rerankHelp } from "./rerank.ts";
import { rmHelp } from "./rm.ts";
import { showHelp } from "./show.ts";

test("help names every spelling of every flag", () => {
  const words = new Set(helpText(false).split(/[\s,]+/));
  const missing = FLAGS.flatMap((flag) => [
    ...spellings(flag),
    ...Object.keys(flag.shortcuts ?? {}),
  ]).filter((spelling) => !words.has(spelling));
  expect(missing).toEqual([]);
});

test.each([
  ["serve", helpText],
  ["embed", embedHelp],
  ["rerank", rerankHelp],
  ["pull", pullHelp],
  ["list", listHelp],
  ["rm", rmHelp],
  ["show", showHelp],
])("the help of %s fits 80 columns, with no blanks at line ends", (_, help) => {
  const lines = help(false).split("\n");
  expect(lines.filter((line) => line.length > 80 || line !== line.trimEnd())).toEqual([]);
  expect(Bun.stripANSI(help(true))).toBe(help(false));
});

test.each([
  ["embed", embedHelp],
  ["list", listHelp],
  ["rm", rmHelp],
  ["show", showHelp],
])("the help of %s ends with --help itself, below the groups that say more", (_, help) => {
  const groups = help(false)
    .split("\n")
    .filter((line) => /^[A-Z]\w+$/.test(line));
  expect(groups.at(-1)).toBe("Other");
  expect(new Set(groups).size).toBe(groups.length);
});

test("colours add nothing but colours, and only when asked for", () => {
  expect(helpText(false)).not.toContain("\u001b");
  expect(helpText(true)).toContain("\u001b");
  expect(Bun.stripANSI(helpText(true))).toBe(helpText(false));
});

test("the table for the README has one row per flag and per variable, of equal width", () => {
  const rows = flagsMarkdown().split("\n");
  expect(rows).toHaveLength(FLAGS.length + VARIABLES.length + 2);
  for (const row of rows) expect(row.replaceAll("\\|", "").split("|")).toHaveLength(7);
});

test("the README's table of flags is the generated one (npm run readme writes it)", () => {
  const readme = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");
  const [, shown = ""] = /<!-- flags:begin -->([^]*)<!-- flags:end -->/.exec(readme) ?? [];
  expect(shown.trim()).toBe(flagsMarkdown());
});
