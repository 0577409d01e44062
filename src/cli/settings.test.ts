import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseFlags, type Environment } from "./parse.ts";
import { resolveSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

let root = "";

function checkpoint(name: string, config: object): void {
  mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, name, "config.json"), JSON.stringify(config));
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "mlxcel-settings-"));
  const bert = { model_type: "bert", architectures: ["BertModel"] };
  checkpoint("owner/embedder", bert);
  checkpoint("owner/other", bert);
  checkpoint("sentence-transformers/all-MiniLM-L6-v2", bert);
  checkpoint("owner/chat", { model_type: "qwen3", architectures: ["Qwen3ForCausalLM"] });
  checkpoint("owner/ranker", {
    model_type: "bert",
    architectures: ["BertForSequenceClassification"],
  });
  writeFileSync(join(root, "keys"), "# comment\none\n\n  two  \r\n");
  writeFileSync(join(root, "no-keys"), "# nothing\n");
});

afterAll(() => rmSync(root, { recursive: true }));

function settings(args: readonly string[], env: Environment = {}) {
  return resolveSettings(parseFlags(["--models-dir", root, ...args], env), env);
}

describe("which model is served", () => {
  test("none named: the default, and the settings say so", () => {
    const { embedder } = settings([]);
    expect(embedder).toMatchObject({ id: "all-MiniLM-L6-v2", isDefault: true });
    expect(embedder.names).toEqual(["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"]);
  });

  test.each(["-m", "--embedding-model"])(
    "%s names it: id, repository and aliases all count",
    (flag) => {
      const { embedder } = settings([flag, "owner/embedder", "--alias", "a,b"]);
      expect(embedder).toMatchObject({ id: "embedder", isDefault: false });
      expect(embedder.names).toEqual(["embedder", "owner/embedder", "a", "b"]);
      expect(embedder.worker.directory).toBe(join(root, "owner", "embedder"));
    },
  );

  test("both flags may name one model in two ways", () => {
    const path = join(root, "owner", "embedder");
    const { embedder } = settings(["-m", path, "--embedding-model", "owner/embedder"]);
    expect(embedder.names).toEqual(["embedder", path, "owner/embedder"]);
  });

  test("two embedders contradict each other: both are named", () => {
    const both = () => settings(["-m", "owner/embedder", "--embedding-model", "owner/other"]);
    expect(both).toThrow(UsageError);
    expect(both).toThrow(
      "-m owner/embedder and --embedding-model owner/other are two embedding models",
    );
  });

  test("a chat model or a reranker is refused by what it is", () => {
    expect(() => settings(["-m", "owner/chat"])).toThrow(
      "owner/chat is a chat model; this version serves embeddings only: drop -m",
    );
    expect(() => settings(["-m", "owner/ranker"])).toThrow(
      "owner/ranker is a reranker; this version serves embeddings only",
    );
    expect(() => settings(["--embedding-model", "owner/ranker"])).toThrow(
      "--embedding-model owner/ranker is a reranker",
    );
    expect(() => settings(["-m", "owner/chat"])).not.toThrow(UsageError);
  });
});

describe("limits", () => {
  test("0 stands for the default", () => {
    const { embedder } = settings(
      "-c 0 --embedding-queue-depth 0 --embedding-request-timeout-secs 0 --embedding-batch-size 0".split(
        " ",
      ),
    );
    expect(embedder).toMatchObject({ queueDepth: 8, requestTimeoutMs: 120_000 });
    expect(embedder.worker.maxLength).toBeUndefined();
    expect(embedder.worker.batchRows).toBeUndefined();
  });

  test("values reach the worker, also above 255", () => {
    const { embedder } = settings(
      "-c 64 --embedding-request-timeout-secs 900 -b 512 --pooling cls --embd-normalize 0 --cache-limit 0".split(
        " ",
      ),
    );
    expect(embedder.requestTimeoutMs).toBe(900_000);
    expect(embedder.worker).toMatchObject({
      maxLength: 64,
      batchTokens: 512,
      pooling: "cls",
      normalize: 0,
      cacheLimitBytes: 0,
    });
  });
});

describe("access", () => {
  test("a host that ends in .sock is a unix socket", () => {
    expect(settings(["--host", "run/m.sock"]).listen).toEqual({ socketPath: "run/m.sock" });
    expect(settings(["--host", "::1"]).listen).toEqual({ host: "::1", port: 8080 });
  });

  test("keys of the flag and of the file add up; comments and blank lines are none", () => {
    expect(
      settings(["--api-key", "zero,one", "--api-key-file", join(root, "keys")]).apiKeys,
    ).toEqual(["zero", "one", "two"]);
  });

  test("a key file that is missing or empty stops the start", () => {
    expect(() => settings(["--api-key-file", join(root, "absent")])).toThrow(
      "absent: no such file",
    );
    expect(() => settings(["--api-key-file", join(root, "no-keys")])).toThrow("holds no key");
  });

  test("certificate and key go together", () => {
    const file = join(root, "keys");
    expect(() => settings(["--ssl-cert-file", file])).toThrow(UsageError);
    expect(() => settings(["--ssl-key-file", file])).toThrow("--ssl-cert-file");
    expect(() => settings(["--ssl-key-file", file, "--ssl-cert-file", "absent.pem"])).toThrow(
      "--ssl-cert-file absent.pem: no such file",
    );
    expect(settings(["--ssl-key-file", file, "--ssl-cert-file", file]).tls).toEqual({
      certFile: file,
      keyFile: file,
    });
  });

  test("* among the origins means every origin", () => {
    expect(settings([]).corsOrigins).toBeUndefined();
    expect(settings(["--cors-origins", "*"]).corsOrigins).toBeUndefined();
    expect(settings(["--cors-origins", "https://a.example"]).corsOrigins).toEqual([
      "https://a.example",
    ]);
  });
});

test("flags without effect are named in one notice, each once", () => {
  expect(settings("-np 1 --no-webui -np 2".split(" ")).notices).toEqual([
    "accepted without effect: -np, --no-webui",
  ]);
  expect(settings([]).notices).toEqual([]);
});
