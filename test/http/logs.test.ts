import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { CheckpointCopy, fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { embed, expectAlive } from "./answers.ts";
import { words } from "./texts.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-mean")];
const SECRETS = [
  "zebrasecret",
  "sk-rightkey",
  "sk-wrongkey",
  "querysecret",
  "urlsecret",
  "instructsecret",
];
/** A token that makes every vector it takes part in NaN. */
const POISON = "vector";
const POISON_ID = 491;
const Line = z.looseObject({ level: z.string() });

async function sendSecrets(server: Server): Promise<void> {
  const key = { authorization: "Bearer sk-rightkey" };
  const image = { type: "image_url", image_url: { url: "http://127.0.0.1:9/a.png?sig=urlsecret" } };
  const bodies = [
    { input: "zebrasecret" },
    { input: ["zebrasecret", ""] },
    { input: "a", instruction: "instructsecret" },
    { input: [image, image] },
    { input: `zebrasecret ${words(200)}`, truncate: false },
    { input: Array(3000).fill("zebrasecret with a long tail behind it") },
    '{"input":"zebrasecret',
    "zebrasecret",
  ];
  for (const path of ["/v1/embeddings", "/embedding", "/tokenize"]) {
    for (const body of bodies) await (await server.post(path, body, key)).text();
  }
  await (await server.post("/embed", { inputs: ["zebrasecret"] }, key)).text();
  await (await server.post("/tokenize", { content: "zebrasecret" }, key)).text();
  await (await server.post("/v1/rerank", { query: "zebrasecret", documents: [] }, key)).text();
  const wrong = { "x-api-key": "sk-wrongkey" };
  await (await server.post("/v1/embeddings?q=querysecret", { input: "a" }, wrong)).text();
  await (await server.get("/health?q=querysecret", key)).text();
}

describe.each(["json", "text"])("logs as %s at debug level", (format) => {
  test("never hold texts, keys or query strings", async () => {
    const flags = ["--api-key", "sk-rightkey", "--log-format", format, "--log-level", "debug"];
    await using server = await startServer([...MODEL, ...flags]);
    await sendSecrets(server);
    await server.stop();
    const output = server.stderr() + server.stdout();
    expect(output).toContain("/v1/embeddings");
    for (const secret of SECRETS) expect(output).not.toContain(secret);
  });
});

test("a failure inside the model does not put the text into the log either", async () => {
  const copy = new CheckpointCopy("bert-mean").poison(POISON_ID);
  const flags = ["--log-level", "debug", "--log-format", "json"];
  await using server = await startServer(["--embedding-model", copy.directory, ...flags]);
  const { tokens } = await embed(server, { input: "zebrasecret" });
  expect(tokens).toBeGreaterThan(2);
  for (const path of ["/v1/embeddings", "/embedding"]) {
    expect((await server.post(path, { input: `zebrasecret ${POISON}` })).status).toBe(500);
  }
  await server.stop();
  expect(server.stderr() + server.stdout()).not.toContain("zebrasecret");
});

test("with --log-format json every line on stderr is an object with a level", async () => {
  await using server = await startServer([
    ...MODEL,
    "--log-format",
    "json",
    "--log-level",
    "debug",
  ]);
  await expectAlive(server);
  const named = await server.get("/nope", { "x-request-id": "find-me-again" });
  expect(named.status).toBe(404);
  await server.stop();
  const lines = server.stderr().trimEnd().split("\n");
  for (const line of lines) Line.parse(JSON.parse(line));
  expect(lines.filter((line) => line.includes("find-me-again"))).toHaveLength(1);
});

test.each([
  ["json", /^\{"time":"[^"]+","level":"warn","message":"([^"]+)"\}$/],
  ["text", /^\S+Z warn {2}(.+)$/],
])("with --log-format %s what the start has to say is a line of the log", async (format, shape) => {
  const flags = ["-ngl", "99", "-c", "100000", "--host", "0.0.0.0", "--log-format", format];
  await using server = await startServer([...MODEL, ...flags]);
  const lines = server.stderr().trimEnd().split("\n");
  expect(lines.map((line) => shape.exec(line)?.[1])).toEqual([
    "accepted without effect: -ngl",
    "--embedding-max-length 100000 is capped to 96, the limit of bert-mean",
    expect.stringContaining("may use this server"),
  ]);
});

test("--log-level error keeps the log silent about requests and the start", async () => {
  await using server = await startServer([...MODEL, "--log-level", "error", "-ngl", "99"]);
  await expectAlive(server);
  await (await server.post("/v1/embeddings", "{")).text();
  await server.stop();
  expect(server.stderr()).toBe("");
});
