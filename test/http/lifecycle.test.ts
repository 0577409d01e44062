import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CheckpointCopy, fixture, temporaryDirectory } from "../checkpoints.ts";
import { run, type Server, startServer, until } from "../server.ts";
import { embed, embedOne, expectAlive, expectVector, refusalOf } from "./answers.ts";
import { Connection } from "./connection.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-mean")];
const started: Server[] = [];
afterAll(() => Promise.all(started.map((server) => server.stop("SIGKILL"))));

/** A start that must fail: one line on stderr and the exit code. */
async function refusedStart(
  args: readonly string[],
  env?: Record<string, string>,
): Promise<{ exitCode: number; line: string }> {
  const { exitCode, stderr } = await run(args, env);
  const line = stderr.trimEnd();
  expect(line).not.toBe("");
  expect(line.split("\n")).toHaveLength(1);
  return { exitCode, line };
}

async function freePort(): Promise<number> {
  const listener = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = listener;
  await listener.stop(true);
  return port ?? 0;
}

describe("wrong command lines: one line, exit code 2", () => {
  test.each([
    [["--embeding-model", "x"], "--embeding-model"],
    [["--frobnicate"], "--frobnicate"],
    [["--port", "http"], "--port"],
    [["--port", "70000"], "--port"],
    [["--port"], "--port"],
    [["--embedding-queue-depth", "-3"], "--embedding-queue-depth"],
    [["--embedding-batch-size", "many"], "--embedding-batch-size"],
    [["--pooling", "median"], "--pooling"],
    [["--pooling", "none"], "--pooling"],
    [["--embd-normalize", "-2"], "--embd-normalize"],
    [["--truncate", "maybe"], "--truncate"],
    [["--device", "tpu"], "--device"],
    [["--log-level", "loud"], "--log-level"],
    [["--max-body-size", "64MX"], "--max-body-size"],
    [["--ssl-cert-file", "x.pem"], "--ssl-key-file"],
    [["stray"], "stray"],
  ])("%j names %s", async (flags, name) => {
    const { exitCode, line } = await refusedStart(["serve", ...flags]);
    expect(line).toContain(name);
    expect(exitCode).toBe(2);
  });

  test("a flag that npm start took for itself leaves its value: how to pass it is said", async () => {
    const underNpm = { npm_lifecycle_event: "start", npm_config_port: "true" };
    const { exitCode, line } = await refusedStart(["8496"], underNpm);
    expect(line).toContain("npm start -- --port 8080");
    expect(exitCode).toBe(2);
    const behindDashes = { npm_lifecycle_event: "start" };
    for (const words of [["frobnicate"], ["help", "nope"]]) {
      expect((await refusedStart(words, behindDashes)).line).not.toContain("npm");
    }
    expect((await refusedStart(["8496"], { npm_lifecycle_event: "" })).line).not.toContain("npm");
  });

  test("a wrong value in a variable names the variable", async () => {
    const { exitCode, line } = await refusedStart(["serve"], { MLXCEL_PORT: "http" });
    expect(line).toContain("MLXCEL_PORT");
    expect(exitCode).toBe(2);
  });

  test("two models of one kind name both", async () => {
    const { exitCode, line } = await refusedStart(["-m", fixture("bert-cls"), ...MODEL]);
    expect(line).toContain("bert-cls");
    expect(line).toContain("bert-mean");
    expect(exitCode).toBe(2);
  });

  test("a wrong key never shows", async () => {
    const { line } = await refusedStart(["serve", "--api-key", "", "--port", "x"]);
    expect(line).not.toContain("undefined");
  });

  test.each(["--api-key-file", "--ssl-cert-file"])("%s that is missing", async (flag) => {
    const path = "/no/such/file";
    const key = flag === "--ssl-cert-file" ? ["--ssl-key-file", path] : [];
    const { exitCode, line } = await refusedStart([...MODEL, flag, path, ...key]);
    expect(line).toContain(path);
    expect(exitCode).toBe(2);
  });
});

describe("starts that fail: one line, exit code 1", () => {
  test.each(["/no/such/model", "./no-such-model"])(
    "model directory %s is missing",
    async (path) => {
      const { exitCode, line } = await refusedStart(["serve", "--embedding-model", path]);
      expect(line).toContain(path);
      expect(exitCode).toBe(1);
    },
  );

  test("a repository that is nowhere", async () => {
    const { exitCode, line } = await refusedStart(["-m", "nobody/nothing"]);
    expect(line).toContain("nobody/nothing");
    expect(exitCode).toBe(1);
  });

  test("a directory without a model, and a file", async () => {
    const directory = temporaryDirectory();
    const file = join(directory, "model.bin");
    writeFileSync(file, "x");
    for (const path of [directory, file]) {
      const { exitCode, line } = await refusedStart(["-m", path]);
      expect(line).toContain(path);
      expect(exitCode).toBe(1);
    }
  });

  test("a chat model is told apart from an embedder", async () => {
    const chat = new CheckpointCopy("bert-mean")
      .remove("modules.json")
      .remove("1_Pooling")
      .set("config.json", { model_type: "llama", architectures: ["LlamaForCausalLM"] });
    const { exitCode, line } = await refusedStart(["-m", chat.directory]);
    expect(line).toContain("is a chat model");
    expect(exitCode).toBe(1);
  });

  test("a port in use", async () => {
    await using server = await startServer(MODEL);
    const { exitCode, line } = await refusedStart([...MODEL, "--port", String(server.port)]);
    expect(line).toContain(String(server.port));
    expect(line).toContain("in use");
    expect(exitCode).toBe(1);
    await expectAlive(server);
  });

  test("a host that is not ours", async () => {
    const { exitCode, line } = await refusedStart([...MODEL, "--port", "0", "--host", "192.0.2.1"]);
    expect(line).toContain("192.0.2.1");
    expect(exitCode).toBe(1);
  });
});

describe("--help", () => {
  test.each(["--help", "-h", "serve --help", "help"])("%s", async (line) => {
    const { exitCode, stdout, stderr } = await run(line.split(" "));
    expect(exitCode).toBe(0);
    expect(stderr).toBe("");
    for (const flag of ["--model", "--embedding-model", "--port", "--api-key", "--no-truncate"]) {
      expect(stdout).toContain(flag);
    }
    for (const name of ["MLXCEL_", "LLAMA_ARG_PORT"]) expect(stdout).toContain(name);
  });

  test("--version", async () => {
    const { exitCode, stdout } = await run(["--version"]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^mlxcel \d+\.\d+\.\d+/);
  });
});

describe("where settings come from", () => {
  test("a flag beats MLXCEL_*, which beats LLAMA_ARG_*", async () => {
    const model = fixture("bert-mean");
    const env = {
      MLXCEL_EMBEDDING_MODEL: model,
      LLAMA_ARG_ALIAS: "llama",
      LLAMA_ARG_CTX_SIZE: "8",
      MLXCEL_EMBEDDING_MAX_LENGTH: "16",
    };
    const served = async (flags: readonly string[], overrides: Record<string, string>) => {
      await using server = await startServer(flags, { env: { ...env, ...overrides } });
      const { tokens } = await embed(server, { input: words(200) });
      const aliases = await Promise.all(
        ["llama", "own", "flag"].map(async (name) => {
          const response = await server.post("/v1/embeddings", { input: "a", model: name });
          return response.status;
        }),
      );
      await server.stop();
      return { tokens, aliases };
    };
    expect(await served([], {})).toEqual({ tokens: 16, aliases: [200, 400, 400] });
    expect(await served(["-c", "32", "--alias", "flag"], { MLXCEL_ALIAS: "own" })).toEqual({
      tokens: 32,
      aliases: [400, 400, 200],
    });
    expect(await served([], { MLXCEL_ALIAS: "own", MLXCEL_EMBEDDING_MAX_LENGTH: "" })).toEqual({
      tokens: 8,
      aliases: [400, 200, 400],
    });
  });

  test("llama-server's flags without effect are accepted and named in one line", async () => {
    await using server = await startServer([
      ...MODEL,
      "-np",
      "4",
      "--no-webui",
      "-ngl",
      "99",
      "-fa",
      "on",
    ]);
    await expectAlive(server);
    const lines = server
      .stderr()
      .split("\n")
      .filter((line) => line.includes("-np"));
    expect(lines).toHaveLength(1);
    for (const flag of ["-np", "--no-webui", "-ngl", "-fa"]) expect(lines[0]).toContain(flag);
  });

  test("a repository in the local store goes by its whole name and by its last part", async () => {
    const store = temporaryDirectory();
    cpSync(fixture("bert-mean"), join(store, "demo/mini"), { recursive: true });
    await using server = await startServer(["-m", "demo/mini", "--models-dir", store]);
    for (const model of ["mini", "demo/mini"]) {
      expect((await embed(server, { input: "vector", model })).model).toBe("mini");
    }
    expect((await server.get("/v1/models/demo/mini")).status).toBe(200);
    const refusal = await refusalOf(await server.post("/embedding", { input: "a", model: "demo" }));
    expect(refusal.code).toBe("model_not_found");
  });

  test("-m serves an embedder, also beside --embedding-model of the same directory", async () => {
    await using server = await startServer(["-m", fixture("bert-mean"), ...MODEL, "--embedding"]);
    await expectAlive(server);
  });
});

describe("while the model loads", () => {
  test("the server listens and answers 503, then serves", async () => {
    // So many tensors take far longer to load than a few requests take to be refused.
    const copy = new CheckpointCopy("bert-mean").layers(1500);
    const port = await freePort();
    await using server = await startServer(
      ["--embedding-model", copy.directory, "--port", String(port)],
      {
        waitUntilReady: false,
      },
    );
    started.push(server);
    await until(async () => {
      const response = await server.get("/health").catch(() => undefined);
      return response !== undefined;
    }, "the server does not listen while it loads");
    for (const path of ["/", "/health", "/v1/health", "/props", "/v1/models", "/info"]) {
      const refusal = await refusalOf(await server.get(path));
      expect(refusal).toMatchObject({ status: 503, type: "unavailable_error" });
    }
    const refusal = await refusalOf(await server.post("/v1/embeddings", { input: "vector" }));
    expect(refusal).toMatchObject({ status: 503, type: "unavailable_error" });
    expect(refusal.message).toContain("Loading model");
    expect((await refusalOf(await server.post("/v1/rerank", {}))).status).toBe(501);

    await until(async () => (await server.get("/health")).ok, "it never finished loading");
    await expectAlive(server);
  });
});

describe("the end", () => {
  const slow = new CheckpointCopy("bert-mean").layers(24);

  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s answers what runs, refuses what comes, exits 0",
    async (signal) => {
      await using server = await startServer(["--embedding-model", slow.directory]);
      const texts = shuffledTexts(60, 90);
      const running = [embed(server, { input: texts }), embedOne(server, "vector")];
      await Bun.sleep(200);
      const exit = server.stop(signal);
      const [list] = await Promise.all(running);
      expect(list).toMatchObject({ vectors: { length: texts.length } });
      const late = await server.post("/v1/embeddings", { input: "late" }).catch(() => undefined);
      if (late) expect(late.status).toBe(503);
      expect(await exit).toBe(0);
    },
  );

  test("an idle kept-alive connection does not hold it up", async () => {
    await using server = await startServer(MODEL);
    await expectAlive(server);
    await Promise.all(Array.from({ length: 5 }, () => server.get("/health").then((r) => r.text())));
    expect(await server.stop()).toBe(0);
    expect(server.stderr()).not.toContain("finishing");
    expect(server.stderr().trimEnd()).toEndWith("stopped");
  });

  test("a second signal ends it at once: what still runs is a 503", async () => {
    await using server = await startServer(["--embedding-model", slow.directory]);
    const cut = server.post("/v1/embeddings", { input: shuffledTexts(5000, 90) });
    await Bun.sleep(200);
    process.kill(server.pid, "SIGTERM");
    await until(async () => {
      const response = await server.get("/health").catch(() => undefined);
      return response?.status !== 200;
    }, "it does not refuse new requests");
    expect(server.stderr()).toContain("finishing the requests that run");
    await Bun.sleep(400);
    expect(await server.stop()).toBe(0);
    expect(await refusalOf(await cut)).toMatchObject({ status: 503, type: "unavailable_error" });
    expect(server.stderr().trimEnd()).toEndWith("stopped");
  });

  test("a signal that arrives twice at once counts as one", async () => {
    await using server = await startServer(["--embedding-model", slow.directory]);
    const texts = shuffledTexts(1000, 90);
    const running = embed(server, { input: texts });
    await Bun.sleep(100);
    process.kill(server.pid, "SIGTERM");
    await Bun.sleep(20);
    expect(await server.stop()).toBe(0);
    expect((await running).vectors).toHaveLength(texts.length);
  });

  test("a client that never finishes its request does not hold it up", async () => {
    await using server = await startServer(MODEL);
    const connection = await Connection.open(server.port);
    connection.head("POST", "/v1/embeddings", ["content-length: 100"]);
    await expectAlive(server);
    expect(await server.stop()).toBe(0);
    connection.close();
  });

  test("a client that never reads a big answer does not hold it up", async () => {
    await using server = await startServer(MODEL);
    const connection = await Connection.open(server.port);
    connection.pause();
    connection.post("/v1/embeddings", JSON.stringify({ input: Array(20_000).fill("a") }));
    await until(() => server.stderr().includes("status=200"), "the request is not answered");
    expect(await server.stop()).toBe(0);
    connection.close();
  });

  test("the same port can be used again at once, with the same numbers", async () => {
    const port = String(await freePort());
    await using first = await startServer([...MODEL, "--port", port]);
    const vector = await embedOne(first, "vector");
    expect(await first.stop()).toBe(0);
    await using second = await startServer([...MODEL, "--port", port]);
    expectVector(await embedOne(second, "vector"), vector);
  });
});
