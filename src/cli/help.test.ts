import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS, loadCommand } from "./commands.ts";
import { spellings } from "./flag-table.ts";
import { FLAGS } from "./flags.ts";
import { VARIABLES } from "./variables.ts";
import { flagsMarkdown, helpText } from "./help.ts";

test("help names every spelling of every flag", () => {
  const words = new Set(helpText(false).split(/[\s,]+/));
  const missing = FLAGS.flatMap((flag) => [
    ...spellings(flag),
    ...Object.keys(flag.shortcuts ?? {}),
  ]).filter((spelling) => !words.has(spelling));
  expect(missing).toEqual([]);
});

test("spellings that take no value are not listed with those that do: help says what they mean", () => {
  const lines = helpText(false).split("\n");
  expect(lines).toContain("  --log-level debug|info|warn|error");
  expect(lines.join(" ").replace(/\s+/g, " ")).toContain(
    "-v, --verbose and --log-verbose stand alone and mean debug.",
  );
  const row = flagsMarkdown()
    .split("\n")
    .find((line) => line.startsWith("| `--truncate` |"));
  expect(row).toContain("`--no-truncate` stands alone and means `error`.");
});

const names = Object.keys(COMMANDS);

test.each(names)("the help of %s fits 80 columns, with no blanks at line ends", async (name) => {
  const { help } = await loadCommand(name);
  const lines = help(false).split("\n");
  expect(lines.filter((line) => line.length > 80 || line !== line.trimEnd())).toEqual([]);
  expect(Bun.stripANSI(help(true))).toBe(help(false));
});

test.each(names)("the help of %s is its own, and the program's lists it", async (name) => {
  const { help } = await loadCommand(name);
  const [title = ""] = help(false).split("\n");
  expect(title).toStartWith(name === "serve" ? "mlxcel " : `mlxcel ${name} `);
  expect(helpText(false)).toMatch(new RegExp(`^  mlxcel .*\\b${name}\\b`, "m"));
});

test.each(names)(
  "the help of %s ends with --help itself, below the groups that say more",
  async (name) => {
    const { help } = await loadCommand(name);
    const groups = help(false)
      .split("\n")
      .filter((line) => /^[A-Z]\w+$/.test(line));
    expect(groups.at(-1)).toBe("Other");
    expect(new Set(groups).size).toBe(groups.length);
  },
);

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
