/** Writes the table of flags into README.md: `npm run readme`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagsMarkdown } from "../src/cli/help.ts";

const README = join(import.meta.dir, "../README.md");
const BEGIN = "<!-- flags:begin -->";
const END = "<!-- flags:end -->";

const text = readFileSync(README, "utf8");
const [before, after] = [text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)];
if (after < before) throw new Error(`README.md lacks ${BEGIN} … ${END}`);
writeFileSync(
  README,
  `${text.slice(0, before)}\n\n${flagsMarkdown().trim()}\n\n${text.slice(after)}`,
);
