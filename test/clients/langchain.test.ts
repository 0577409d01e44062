import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { fixture } from "../checkpoints.ts";
import {
  embed,
  expectAlive,
  expectDifferent,
  expectVector,
  expectVectors,
} from "../http/answers.ts";
import { type Server, startServer } from "../server.ts";
import { Failure, PYTHON_TIMEOUT_MS, runPython } from "./python.ts";
import { many, MODEL, one } from "./reference.ts";
import { demoModelFlags, expectPublishedSimilarities, sentences } from "./sentences.ts";

setDefaultTimeout(PYTHON_TIMEOUT_MS);

const DEMO_VOCABULARY = 30_522;
const [WEATHER, SUNNY, STADIUM] = sentences;
/** Their ids in OpenAI's cl100k vocabulary happen to exist in the demo model's too. */
const IN_RANGE = [WEATHER, STADIUM];

const Ids = z.array(z.number());
const Vector = z.array(z.number());
const Answers = z.strictObject({
  query: Vector,
  documents: z.array(Vector),
  refused: Failure,
  in_range: z.strictObject({ ids: z.array(Ids), query: Vector, documents: z.array(Vector) }),
  out_of_range: z.strictObject({ ids: Ids, query: Failure, documents: Failure }),
  real_texts: z.array(Vector),
});

let small: Server;
let real: Server;
let answers: z.infer<typeof Answers>;
beforeAll(async () => {
  small = await startServer(["--embedding-model", fixture(MODEL)]);
  real = await startServer(demoModelFlags);
  const asked = {
    small: { url: small.url, model: MODEL, one: one.input, many: many.texts },
    real: {
      url: real.url,
      model: "sentence-transformers/all-MiniLM-L6-v2",
      in_range: IN_RANGE,
      out_of_range: SUNNY,
      texts: sentences,
    },
  };
  answers = Answers.parse(await runPython("langchain_client.py", asked));
}, PYTHON_TIMEOUT_MS);
afterAll(() => Promise.all([small?.stop(), real?.stop()]));

describe("LangChain's OpenAIEmbeddings with check_embedding_ctx_length=False", () => {
  test("embed_query and embed_documents give the vectors of the texts", () => {
    expectVector(answers.query, one.embedding);
    expectVectors(answers.documents, many.vectors);
  });

  test("the real model gives the published similarities", () => {
    expectPublishedSimilarities(answers.real_texts);
  });

  test("a refusal is the exception of openai, with our message", () => {
    expect(answers.refused).toMatchObject({
      kind: "BadRequestError",
      status: 400,
      param: "input[0]",
    });
    expect(answers.refused.message).toContain("input[0] is an empty string");
  });
});

describe("LangChain's OpenAIEmbeddings by default, which sends ids of OpenAI's vocabulary", () => {
  test("ids that exist are used verbatim: nothing is added, nothing is translated", async () => {
    const { ids, query, documents } = answers.in_range;
    expect(Math.max(...ids.flat())).toBeLessThan(DEMO_VOCABULARY);
    const direct = await embed(real, { input: ids });
    expectVectors(documents, direct.vectors);
    expectVector(query, direct.vectors[0] ?? []);
    expect(direct.tokens).toBe(ids.flat().length);
  });

  test("so the vectors are not those of the texts", () => {
    const [weather = [], , stadium = []] = answers.real_texts;
    const [weatherIds = [], stadiumIds = []] = answers.in_range.documents;
    expectDifferent(weatherIds, weather);
    expectDifferent(stadiumIds, stadium);
  });

  test("an id beyond the vocabulary is refused with the setting that helps", () => {
    const { ids, query, documents } = answers.out_of_range;
    const at = ids.findIndex((id) => id >= DEMO_VOCABULARY);
    expect(ids[at]).toBeGreaterThanOrEqual(DEMO_VOCABULARY);
    for (const [refusal, item] of [
      [query, 0],
      [documents, IN_RANGE.length],
    ] as const) {
      const param = `input[${item}][${at}]`;
      expect(refusal).toMatchObject({ kind: "BadRequestError", status: 400, param });
      expect(refusal.message).toContain(`token id ${ids[at]}`);
      expect(refusal.message).toContain("check_embedding_ctx_length=False");
    }
  });

  test("the server goes on after it", async () => {
    await expectAlive(real);
  });
});
