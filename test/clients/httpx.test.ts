import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { fixture } from "../checkpoints.ts";
import { expectVectors } from "../http/answers.ts";
import { type Server, startServer } from "../server.ts";
import { Failure, PYTHON_TIMEOUT_MS, runPython } from "./python.ts";
import { many, MODEL, one } from "./reference.ts";

const Vectors = z.array(z.array(z.number()));
const Answers = z.strictObject({
  one: Vectors,
  many: Vectors,
  without_content_type: Vectors,
  refused: z.unknown(),
  raised: Failure,
});

let server: Server;
let answers: z.infer<typeof Answers>;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture(MODEL)]);
  const asked = { url: server.url, one: one.input, many: many.texts };
  answers = Answers.parse(await runPython("httpx_client.py", asked));
}, PYTHON_TIMEOUT_MS);
afterAll(() => server?.stop());

describe("httpx", () => {
  test("one text and many texts", () => {
    expectVectors(answers.one, [one.embedding]);
    expectVectors(answers.many, many.vectors);
  });

  test("a body without a content type is read as JSON", () => {
    expectVectors(answers.without_content_type, [one.embedding]);
  });

  test("a refusal raises HTTPStatusError, and its body says why", () => {
    expect(answers.raised.kind).toBe("HTTPStatusError");
    expect(answers.raised.message).toContain("400");
    expect(answers.refused).toMatchObject({
      error: {
        type: "invalid_request_error",
        param: "input",
        message: expect.stringContaining("input"),
      },
    });
  });
});
