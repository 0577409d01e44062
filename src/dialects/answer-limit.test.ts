import { expect, test } from "bun:test";
import { requireFits } from "./answer-limit.ts";
import type { Dialect, ParseContext } from "./dialect.ts";
import { llamaEmbedding } from "./llama/embedding.ts";
import { openaiEmbeddings } from "./openai/embeddings.ts";
import { teiEmbed } from "./tei/embed.ts";
import { CONTEXT, failureOf, INFO } from "./testing/context.ts";

const WIDE: ParseContext = {
  ...CONTEXT,
  model: { ...CONTEXT.model, info: { ...INFO, dim: 2 ** 26 } },
};

function check(body: object, dialect: Dialect = openaiEmbeddings) {
  return () => {
    const { job, render } = dialect.parse(body, WIDE);
    requireFits(job, render, WIDE.model);
  };
}

function texts(count: number): string[] {
  return Array<string>(count).fill("a");
}

test("too many vectors are refused with the number that fits", () => {
  expect(check({ input: texts(2) })).not.toThrow();
  expect(failureOf(check({ input: texts(3) }))).toMatchObject({
    reason: "invalid",
    param: "input",
    message: `input has 3 items of ${2 ** 26} numbers: send at most 2 items per request`,
  });
});

test("more fit with fewer dimensions, and in base64 up to the limit of a result", () => {
  expect(check({ input: texts(3), dimensions: 2 ** 25 })).not.toThrow();
  expect(check({ input: texts(4), encoding_format: "base64" })).not.toThrow();
  const refused = failureOf(check({ input: texts(5), encoding_format: "base64" }));
  expect(refused.message).toContain("at most 4");
});

test("the field is named as the route names it", () => {
  expect(failureOf(check({ inputs: texts(3) }, teiEmbed)).param).toBe("inputs");
  expect(failureOf(check({ content: texts(3) }, llamaEmbedding)).param).toBe("content");
});
