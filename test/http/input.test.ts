import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { expected, fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import {
  badRequest,
  embed,
  embedNative,
  embedOne,
  expectAlive,
  expectDifferent,
  expectVector,
  expectVectors,
  refusalOf,
} from "./answers.ts";

setDefaultTimeout(60_000);

const CLS = 2;
const SEP = 3;
const VOCABULARY = 1000;
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const reference = expected("bert-mean");
const caseIds = reference.cases.find((entry) => entry.name === "short")?.token_ids ?? [];
const shortText = "How do I boil an egg?";

let server: Server;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture("bert-mean")]);
});
afterAll(() => server?.stop());

describe("accepted shapes", () => {
  test.each(reference.cases)("the reference's vector and token count: $name", async (entry) => {
    const answer = await embed(server, { input: entry.input });
    expectVector(answer.vectors[0] ?? [], entry.embedding);
    expect(answer.tokens).toBe(entry.prompt_tokens);
    expect(answer.model).toBe("bert-mean");
  });

  test("all cases together in one list, in request order, usage summed", async () => {
    const texts = reference.cases.filter((entry) => typeof entry.input === "string");
    const answer = await embed(server, { input: texts.map((entry) => entry.input) });
    expectVectors(
      answer.vectors,
      texts.map((entry) => entry.embedding),
    );
    expect(answer.tokens).toBe(texts.reduce((sum, entry) => sum + entry.prompt_tokens, 0));
  });

  test("token ids are used verbatim: text equals its ids with specials and differs from those without", async () => {
    const text = await embedOne(server, shortText);
    expectVector(await embedOne(server, caseIds), text);
    expectDifferent(await embedOne(server, caseIds.slice(0, -1)), text);
    expectDifferent(await embedOne(server, caseIds.slice(1)), text);
    expectDifferent(await embedOne(server, caseIds.slice(1, -1)), text);
  });

  test("a list of ids is one item, a list of lists one item each, and nothing is added", async () => {
    const one = await embed(server, { input: [CLS, 625, SEP] });
    expect(one.vectors).toHaveLength(1);
    expect(one.tokens).toBe(3);
    const two = await embed(server, {
      input: [
        [CLS, 625, SEP],
        [CLS, SEP],
      ],
    });
    expect(two.vectors).toHaveLength(2);
    expect(two.tokens).toBe(5);
    expectVector(two.vectors[0] ?? [], one.vectors[0] ?? []);
  });

  test("the smallest and the largest token id are valid", async () => {
    expect((await embed(server, { input: [0, VOCABULARY - 1] })).tokens).toBe(2);
  });

  test("each typed part is an item of its own, and strings may stand among them", async () => {
    const [a, b] = [await embedOne(server, "vector"), await embedOne(server, "search")];
    const parts = [{ type: "text", text: "vector" }, "search", { type: "text", text: "vector" }];
    expectVectors((await embed(server, { input: parts })).vectors, [a, b, a]);
  });

  test("a content object is one item, alone and inside a list", async () => {
    const item = { content: [{ type: "text", text: "vector" }] };
    const vector = await embedOne(server, "vector");
    expectVector(await embedOne(server, item), vector);
    expectVectors((await embed(server, { input: [item, "vector"] })).vectors, [vector, vector]);
  });

  test.each([" ", "\n\t", "\u200b", "\u3000 \r\n"])(
    "blank text %j is two special tokens",
    async (blank) => {
      const answer = await embed(server, { input: blank });
      expect(answer.tokens).toBe(2);
      expectVector(answer.vectors[0] ?? [], await embedOne(server, [CLS, SEP]));
    },
  );

  test("null and unknown fields count as absent", async () => {
    const plain = await embed(server, { input: "vector" });
    const fields = ["encoding_format", "dimensions", "user", "embd_normalize", "model", "truncate"];
    const rarer = ["instruction", "prompt_name", "input_type"];
    const nulls = Object.fromEntries([...fields, ...rarer].map((name) => [name, null]));
    const answer = await embed(server, {
      input: "vector",
      ...nulls,
      foo: 1,
      user: "u",
      content: 5,
    });
    expect(answer).toEqual(plain);
  });

  test("an instruction is ignored by a family without one", async () => {
    const plain = await embedOne(server, "vector");
    expect(await embedOne(server, "vector", { instruction: "Find it" })).toEqual(plain);
  });

  test("emoji are valid, and a lone half of one is never a server error", async () => {
    const whole = { input: ["ok 😀", "👨‍👩‍👧", "🏳️‍🌈"] };
    expect((await embed(server, whole)).vectors).toHaveLength(3);
    for (const text of ["x\\ud83d", "\\ude00y", "\\ud83d", "a\\ud83d\\ud83db"]) {
      const response = await server.post("/v1/embeddings", `{"input":["${text}","vector"]}`);
      expect([200, 400]).toContain(response.status);
      await response.text();
    }
    await expectAlive(server);
  });

  test("control characters are valid text", async () => {
    for (const text of [
      "a\u0000b",
      "\u0000",
      "\u0001\u001f\u007f\u0085",
      "\ufeffvector",
      "\uffff",
    ]) {
      expect((await embed(server, { input: text })).vectors).toHaveLength(1);
    }
  });
});

describe("refused shapes", () => {
  const wrong: [unknown, string][] = [
    [{}, "input"],
    [{ input: null }, "input"],
    [{ input: [] }, "input"],
    [{ input: "" }, "input"],
    [{ input: ["vector", ""] }, "input[1]"],
    [{ input: [["", 1]] }, "input[0][0]"],
    [{ input: {} }, "input"],
    [{ input: 5 }, "input"],
    [{ input: true }, "input"],
    [{ input: [null] }, "input[0]"],
    [{ input: [{}] }, "input[0]"],
    [{ input: ["a", [1]] }, "input[1]"],
    [{ input: ["a", 1] }, "input[1]"],
    [{ input: [1, "a"] }, "input[1]"],
    [{ input: [[1], "a"] }, "input[1]"],
    [{ input: [[1], []] }, "input[1]"],
    [{ input: [1.5] }, "input[0]"],
    [{ input: [7, -1] }, "input[1]"],
    [{ input: [[[1]]] }, "input[0][0]"],
    [{ input: [[7, VOCABULARY]] }, "input[0][1]"],
    [{ input: [1e300] }, "input[0]"],
    [{ input: [{ type: "text" }] }, "input[0]"],
    [{ input: [{ type: "text", text: "" }] }, "input[0]"],
    [{ input: [{ type: "audio", text: "x" }] }, "input[0]"],
    [{ input: { content: [] } }, "input"],
    [{ input: ["a", { content: "b" }] }, "input[1]"],
  ];

  test.each(wrong)("%j is a 400 that names %s", async (body, param) => {
    const refusal = await badRequest(server, body);
    expect(refusal.param).toBe(param);
    expect(refusal.message).toContain(param.replace(/\[\d+\]$/, ""));
    await expectAlive(server);
  });

  test("native and TEI routes refuse the same inputs under their own field names", async () => {
    expect((await badRequest(server, { content: "" }, "/embedding")).param).toBe("content");
    expect((await badRequest(server, { content: ["a", ""] }, "/embeddings")).param).toBe(
      "content[1]",
    );
    expect((await badRequest(server, { inputs: [] }, "/embed")).param).toBe("inputs");
    expect((await badRequest(server, {}, "/embedding")).param).toBe("input");
  });

  test("a text model refuses images without opening them", async () => {
    let fetched = 0;
    const trap = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => (fetched++, new Response()),
    });
    const images = [
      { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
      { type: "image_url", image_url: { url: `http://127.0.0.1:${trap.port}/a.png` } },
      { type: "image_url", image_url: { url: "file:///no/such/file.png" } },
      { type: "image", data: PNG },
    ];
    for (const image of images) {
      expect((await badRequest(server, { input: ["vector", image] })).param).toBe("input[1]");
      await badRequest(server, { input: { content: [{ type: "text", text: "a" }, image] } });
    }
    await trap.stop(true);
    expect(fetched).toBe(0);
  });

  test("token ids beyond the vocabulary get advice for LangChain users", async () => {
    const { message } = await badRequest(server, { input: [[15339, 1917]] });
    expect(message).toContain("check_embedding_ctx_length=False");
  });

  const wrongFields: [string, unknown][] = [
    ...[0, 65, -1, 1.5, 1e300, "8", [8], true].map((value): [string, unknown] => [
      "dimensions",
      value,
    ]),
    ...["hex", "FLOAT", "Base64", "", 1].map((value): [string, unknown] => [
      "encoding_format",
      value,
    ]),
    ...[-2, 1.5, "2", []].map((value): [string, unknown] => ["embd_normalize", value]),
    ["truncate", "yes"],
    ["model", 5],
    ["instruction", {}],
    ["prompt_name", ["query"]],
    ["input_type", 7],
  ];
  test.each(wrongFields)("%s %j is a 400 that names the field", async (field, value) => {
    const refusal = await badRequest(server, { input: "vector", [field]: value });
    expect(refusal.param).toBe(field);
    expect(refusal.message).toContain(field);
  });

  test.each(["gpt-4o", "", "BERT-MEAN", "bert-mean "])(
    "model %j is not served here",
    async (model) => {
      for (const path of ["/v1/embeddings", "/embedding"]) {
        const refusal = await badRequest(server, { input: "vector", model }, path);
        expect(refusal).toMatchObject({ code: "model_not_found", param: "model" });
      }
    },
  );

  const notObjects = [
    "",
    " ",
    "{",
    '{"input":',
    "[]",
    '"x"',
    "null",
    "5",
    "{'input':'x'}",
    "input=x",
  ];
  test.each(notObjects)("body %j is a JSON 400", async (body) => {
    for (const path of ["/v1/embeddings", "/embedding", "/embed", "/tokenize", "/detokenize"]) {
      await badRequest(server, body, path);
    }
    await expectAlive(server);
  });
});

describe("models by name", () => {
  test("the id and the path as given name the model; answers carry the id", async () => {
    for (const model of ["bert-mean", fixture("bert-mean")]) {
      expect((await embed(server, { input: "vector", model })).model).toBe("bert-mean");
    }
  });

  test("input wins over content, and a null input gives way to it", async () => {
    const [vector, search] = [await embedOne(server, "vector"), await embedOne(server, "search")];
    expectVectors(await embedNative(server, { input: "vector", content: "search" }), [vector]);
    expectVectors(await embedNative(server, { input: null, content: "search" }), [search]);
    expectVectors(await embedNative(server, { content: ["search", "vector"] }), [search, vector]);
  });

  test("content is no field of the OpenAI route", async () => {
    expect((await badRequest(server, { content: "vector" })).param).toBe("input");
  });
});

test("a request's fault never hides behind another status", async () => {
  const response = await server.post("/v1/embeddings", { input: ["vector", ""] });
  expect((await refusalOf(response)).status).toBe(400);
});
