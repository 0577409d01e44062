import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../test/server.ts";
import { families } from "../models/registry.ts";
import { describeFamilies } from "../models/describe-families.ts";
import { familiesMarkdown, familiesText } from "./arch.ts";

test("the table has a line for every family of the registry", async () => {
  const { exitCode, stdout } = await run(["arch"]);
  expect(exitCode).toBe(0);
  const [titles, ...lines] = stdout.trimEnd().split("\n");
  expect(titles).toMatch(/^model_type +kinds +pooling +formats +max length +quantised +images/);
  expect(lines.map((line) => line.split(" ", 1)[0])).toEqual(
    families.map(({ modelType }) => modelType),
  );
  expect(stdout).toMatch(
    /^qwen3 +embedding, classifier, yes\/no reranker +lasttoken +safetensors, GGUF /m,
  );
  expect(stdout).toMatch(/^mpnet +embedding +mean +safetensors +/m);
});

test("a terminal that is narrower than the table gets a paragraph per family", () => {
  const described = describeFamilies();
  const narrow = familiesText(described, 80, false);
  expect(narrow.split("\n").filter((line) => line.length > 80)).toEqual([]);
  const paragraphs = narrow.split("\n\n");
  expect(paragraphs.map((paragraph) => paragraph.split("\n", 1)[0])).toEqual(
    families.map(({ modelType }) => modelType),
  );
  expect(paragraphs[0]).toContain("\n  max length    max_position_embeddings\n");
  expect(familiesText(described, 300, false)).toBe(familiesText(described, undefined, false));
  expect(Bun.stripANSI(familiesText(described, 80, true))).toBe(narrow);
});

test("--json has the same for programs", async () => {
  const { stdout } = await run(["arch", "--json"]);
  expect(JSON.parse(stdout)).toContainEqual(
    expect.objectContaining({ modelType: "t5", kinds: ["embedding"], lengthLimit: "8192" }),
  );
});

test("README shows the table as it is", async () => {
  const readme = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");
  const [, shown = ""] = /<!-- families:begin -->([\s\S]*)<!-- families:end -->/.exec(readme) ?? [];
  expect(shown.trim()).toBe(await familiesMarkdown());
});
