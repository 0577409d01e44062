import { describe, expect, test } from "bun:test";
import type { RankingOptions } from "../dialect.ts";
import { CONTEXT, failureOf, jsonOf, RERANK_CONTEXT, rerankResult } from "../testing/context.ts";
import { rerank } from "./rerank.ts";

const DOCUMENTS = ["one", "two", "three"];

function parse(fields: object, context = RERANK_CONTEXT) {
  return rerank.parse({ query: "q", documents: DOCUMENTS, ...fields }, context);
}

function options(fields: object): RankingOptions {
  const { render } = parse(fields);
  if (render.kind !== "ranking") throw new Error(render.kind);
  return render;
}

/** The answer of one request whose documents get these scores. */
function answer(fields: object, scores: number[]) {
  return jsonOf(rerank.render(rerankResult(scores), options(fields)));
}

describe("requests", () => {
  test("documents, with everything else left out", () => {
    expect(parse({ model: "judge" })).toEqual({
      job: {
        kind: "rerank",
        query: "q",
        items: [{ text: "one" }, { text: "two" }, { text: "three" }],
        field: { name: "documents", isList: true },
        instruction: undefined,
        truncate: true,
      },
      render: {
        kind: "ranking",
        model: "judge",
        shape: "envelope",
        topN: undefined,
        rawScores: false,
        echo: undefined,
      },
    });
  });

  test("null and unknown fields count as absent, those of other vendors among them", () => {
    const nulls = {
      model: null,
      texts: null,
      top_n: null,
      return_documents: null,
      return_text: null,
      raw_scores: null,
      instruction: null,
      truncate: null,
      user: null,
    };
    const foreign = {
      max_tokens_per_doc: 4096,
      max_chunks_per_doc: 10,
      rank_fields: ["text"],
      truncation_direction: "right",
      priority: 0,
      overlap_tokens: 80,
    };
    expect(parse({ ...nulls, ...foreign })).toEqual(parse({}));
  });

  test("texts ask for the bare shape; documents win over them", () => {
    const texts = parse({ documents: null, texts: ["a"] });
    expect(texts.job).toMatchObject({ items: [{ text: "a" }], field: { name: "texts" } });
    expect(texts.render).toMatchObject({ shape: "bare" });
    const both = parse({ texts: ["a"] });
    expect(both.job.field.name).toBe("documents");
    expect(both.render).toMatchObject({ shape: "envelope" });
  });

  test("the query and the items are strings or objects with text", () => {
    const { job } = parse({
      query: { text: "q", image: null },
      documents: ["a", { text: "b", id: 7 }, { type: "text", text: "c" }],
    });
    expect(job).toMatchObject({ query: "q", items: [{ text: "a" }, { text: "b" }, { text: "c" }] });
  });

  test("half a surrogate pair becomes U+FFFD, whole pairs and joiners stay", () => {
    const { job } = parse({ query: "x\ud83d", documents: ["\ude00y", "ok 😀", "👨‍👩‍👧"] });
    expect(job).toMatchObject({
      query: "x\ufffd",
      items: [{ text: "\ufffdy" }, { text: "ok 😀" }, { text: "👨‍👩‍👧" }],
    });
  });

  test("truncate and raw_scores fall back to the server's settings", () => {
    const context = { ...RERANK_CONTEXT, truncate: false, rawScores: true };
    const silent = parse({}, context);
    expect(silent.job.truncate).toBe(false);
    expect(silent.render).toMatchObject({ rawScores: true });
    const explicit = parse({ truncate: true, raw_scores: false }, context);
    expect(explicit.job.truncate).toBe(true);
    expect(explicit.render).toMatchObject({ rawScores: false });
  });

  test("an instruction is for models that take one; a blank one is none", () => {
    expect(parse({ instruction: " \n" }).job.instruction).toBeUndefined();
    const refused = failureOf(() => parse({ instruction: "Judge" }));
    expect(refused).toMatchObject({ reason: "invalid", param: "instruction" });
    expect(refused.message).toContain("instruction");
    const { model } = RERANK_CONTEXT;
    const info = { ...model.info, kind: "reranker" as const, takesInstruction: true };
    const generative = { ...RERANK_CONTEXT, model: { ...model, info } };
    expect(parse({ instruction: "Judge" }, generative).job.instruction).toBe("Judge");
    expect(parse({ instruction: "Judge" }, CONTEXT).job.instruction).toBe("Judge");
  });

  test("the model is one of the names of the model that ranks", () => {
    expect(parse({ model: "acme/judge" }).render).toMatchObject({ model: "judge" });
    for (const model of ["", "tiny", "rerank-english-v3.0"]) {
      expect(failureOf(() => parse({ model }))).toMatchObject({
        reason: "model_not_found",
        param: "model",
      });
    }
  });
});

describe("wrong values are refused by the name of their field", () => {
  test.each([
    [{ documents: [] }, "documents"],
    [{ documents: null, texts: [] }, "texts"],
    [{ documents: null }, "documents"],
    [{ documents: "abc" }, "documents"],
    [{ documents: { 0: "a" } }, "documents"],
    [{ documents: [], texts: ["a"] }, "documents"],
    [{ documents: null, texts: 5 }, "texts"],
    [{ documents: [null] }, "documents[0]"],
    [{ documents: [5] }, "documents[0]"],
    [{ documents: [["a"]] }, "documents[0]"],
    [{ documents: ["a", ""] }, "documents[1]"],
    [{ documents: ["a", " \n\t"] }, "documents[1]"],
    [{ documents: ["a", {}] }, "documents[1]"],
    [{ documents: ["a", { text: " " }] }, "documents[1]"],
    [{ documents: ["a", { text: 5 }] }, "documents[1]"],
    [{ documents: null, texts: ["a", "b", ""] }, "texts[2]"],
    [{ query: null }, "query"],
    [{ query: undefined }, "query"],
    [{ query: "" }, "query"],
    [{ query: "  " }, "query"],
    [{ query: 5 }, "query"],
    [{ query: ["q"] }, "query"],
    [{ query: {} }, "query"],
    [{ top_n: 0 }, "top_n"],
    [{ top_n: -1 }, "top_n"],
    [{ top_n: 1.5 }, "top_n"],
    [{ top_n: "3" }, "top_n"],
    [{ return_documents: "yes" }, "return_documents"],
    [{ return_text: 1 }, "return_text"],
    [{ raw_scores: "no" }, "raw_scores"],
    [{ truncate: 0 }, "truncate"],
    [{ instruction: 5 }, "instruction"],
    [{ model: 5 }, "model"],
  ])("%j", (fields, param) => {
    const failure = failureOf(() => parse(fields));
    expect({ reason: failure.reason, param: failure.param }).toEqual({ reason: "invalid", param });
    expect(failure.message).toContain(param);
  });

  test.each([
    { image: "http://nowhere.invalid/x.png" },
    { image_url: "http://nowhere.invalid/x.png" },
    { image_url: { url: "http://nowhere.invalid/x.png" } },
    { text: "a", image: "data:image/png;base64,AAAA" },
  ])("an image is refused, not fetched: %j", (image) => {
    const inDocument = failureOf(() => parse({ documents: ["a", image] }));
    expect(inDocument).toMatchObject({ reason: "invalid", param: "documents[1]" });
    expect(inDocument.message).toContain("text reranker");
    expect(failureOf(() => parse({ query: image }))).toMatchObject({ param: "query" });
  });
});

test("more documents than can be put in order are refused", () => {
  const documents = new Array(2 ** 21 + 1).fill("x");
  const failure = failureOf(() => parse({ documents }));
  expect(failure).toMatchObject({ reason: "invalid", param: "documents" });
});

describe("answers", () => {
  test("best first, with the index in the request, the model and the usage", () => {
    expect(answer({}, [0.25, 0.75, 0.5])).toEqual({
      model: "judge",
      object: "list",
      results: [
        { index: 1, relevance_score: 0.75 },
        { index: 2, relevance_score: 0.5 },
        { index: 0, relevance_score: 0.25 },
      ],
      usage: { prompt_tokens: 9, total_tokens: 9 },
    });
    expect(answer({ documents: null, texts: DOCUMENTS }, [0.25, 0.75, 0.5])).toEqual([
      { index: 1, score: 0.75 },
      { index: 2, score: 0.5 },
      { index: 0, score: 0.25 },
    ]);
  });

  test("equal scores come by ascending index, also beyond ten and for both zeros", () => {
    const scores = Array.from({ length: 40 }, (_, i) => (i % 2 ? 0 : -0));
    const documents = scores.map(() => "x");
    const indices = Array.from({ length: 40 }, (_, index) => ({ index }));
    expect(answer({ documents }, scores)).toMatchObject({ results: indices });
  });

  test.each([
    [1, [1]],
    [2, [1, 2]],
    [3, [1, 2, 0]],
    [10, [1, 2, 0]],
    [1e300, [1, 2, 0]],
    [null, [1, 2, 0]],
  ])("top_n %d leaves %j, and the usage as it is", (top_n, kept) => {
    expect(answer({ top_n }, [0.25, 0.75, 0.5])).toMatchObject({
      results: kept.map((index) => ({ index })),
      usage: { total_tokens: 9 },
    });
  });

  test("raw scores are the logits", () => {
    expect(answer({ raw_scores: true, top_n: 1 }, [0.25, 0.75, 0.5])).toMatchObject({
      results: [{ index: 1, relevance_score: 7.5 }],
    });
  });

  test("every score reads back to the very same f32", () => {
    const scores = [0.99982, 0.0000167, 1e-30, 1, 0.1, -8.125, 123.45678];
    const documents = scores.map(String);
    const rendered = rerank.render(rerankResult(scores), options({ documents }));
    const text = new TextDecoder().decode(rendered);
    const read = [...text.matchAll(/"relevance_score":([^},]+)/g)].map((match) =>
      Math.fround(Number(match[1])),
    );
    expect(read).toEqual([...Float32Array.from(scores)].sort((a, b) => b - a));
  });

  test.each([NaN, Infinity])("%d as a score is a failure of ours, never an answer", (bad) => {
    for (const fields of [{}, { documents: null, texts: DOCUMENTS }]) {
      const failure = failureOf(() => rerank.render(rerankResult([1, bad, 1]), options(fields)));
      expect(failure.reason).toBe("internal");
    }
  });
});

describe("the echo", () => {
  const documents = [
    { text: "grün 😀", id: 7, nested: { list: [1, null, "\ud83d"], empty: {} } },
    'quotes " and \\ and \n',
    { meta: null, text: "last" },
  ];

  test("is the item of the request with all its keys", () => {
    for (const asked of [{ return_documents: true }, { return_text: true }]) {
      expect(answer({ documents, ...asked, top_n: 2 }, [0.1, 0.2, 0.3])).toMatchObject({
        results: [
          { index: 2, document: { meta: null, text: "last" } },
          { index: 1, document: documents[1] },
        ],
      });
    }
    expect(answer({ documents, return_documents: true }, [0.3, 0.2, 0.1])).toMatchObject({
      results: [{ index: 0, document: documents[0] }, { index: 1 }, { index: 2 }],
    });
    const texts = { documents: null, texts: DOCUMENTS, return_text: true, top_n: 1 };
    expect(answer(texts, [0.1, 0.3, 0.2])).toEqual([{ index: 1, score: 0.3, text: "two" }]);
  });

  test("is absent, not null, unless it is asked for", () => {
    for (const asked of [{}, { return_documents: false }, { return_text: false }]) {
      expect(JSON.stringify(answer({ documents, ...asked }, [1, 2, 3]))).not.toContain("document");
    }
    const texts = { documents: null, texts: DOCUMENTS, return_documents: true };
    expect(JSON.stringify(answer(texts, [1, 2, 3]))).not.toContain("text");
  });
});
