import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { spellings } from "./flag-table.ts";
import { FLAGS } from "./flags.ts";
import { embedHelp } from "./embed.ts";
import { flagsMarkdown, helpText } from "./help.ts";
import { rerankHelp } from "./rerank.ts";

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
])("the help of %s fits 80 columns, with no blanks at line ends", (_, help) => {
  const lines = help(false).split("\n");
  expect(lines.filter((line) => line.length > 80 || line !== line.trimEnd())).toEqual([]);
  expect(Bun.stripANSI(help(true))).toBe(help(false));
});

test("colours add nothing but colours, and only when asked for", () => {
  expect(helpText(false)).not.toContain("\u001b");
  expect(helpText(true)).toContain("\u001b");
  expect(Bun.stripANSI(helpText(true))).toBe(helpText(false));
});

test("the table for the README has one row per flag, of equal width", () => {
  const rows = flagsMarkdown().split("\n");
  expect(rows).toHaveLength(FLAGS.length + 2);
  for (const row of rows) expect(row.replaceAll("\\|", "").split("|")).toHaveLength(7);
});

const readmePath = join(import.meta.dir, "..", "..", "README.md");
const readme = existsSync(readmePath) ? readFileSync(readmePath, "utf8") : "";
const begin = "<!-- flags:begin -->";
const end = "<!-- flags:end -->";

// Skipped only while README.md has no place for the table: the two markers unskip it.
test.skipIf(!readme.includes(begin) || !readme.includes(end))(
  "the README's table of flags is the generated one",
  () => {
    const shown = readme.slice(readme.indexOf(begin) + begin.length, readme.indexOf(end));
    expect(shown.trim()).toBe(flagsMarkdown());
  },
);
