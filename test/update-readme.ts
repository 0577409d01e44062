/** Writes the generated tables into README.md: `npm run readme`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { familiesMarkdown } from "../src/cli/arch.ts";
import { flagsMarkdown } from "../src/cli/help.ts";

const README = join(import.meta.dir, "../README.md");

/** The text between `<!-- name:begin -->` and `<!-- name:end -->` becomes `table`. */
function replaced(text: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const [before, after] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  if (after < before) throw new Error(`README.md lacks ${begin} … ${end}`);
  return `${text.slice(0, before)}\n\n${table.trim()}\n\n${text.slice(after)}`;
}

const text = readFileSync(README, "utf8");
const withFamilies = replaced(text, "families", await familiesMarkdown());
writeFileSync(README, replaced(withFamilies, "flags", flagsMarkdown()));
