import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../native/environment.ts";
import { parseFlags } from "./parse.ts";
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
  checkpoint("sentence-transformers/all-MiniLM-L6-v2", bert);
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

async function onlyEmbedder(args: readonly string[]) {
  const { embedder, reranker } = await settings(args);
  if (!embedder || reranker) throw new Error("expected an embedder alone");
  return embedder;
}

describe("limits", () => {
  test("0 stands for the default", async () => {
    const embedder = await onlyEmbedder(
      "-c 0 --embedding-queue-depth 0 --embedding-request-timeout-secs 0 --embedding-batch-size 0".split(
        " ",
      ),
    );
    expect(embedder).toMatchObject({ queueDepth: 8, requestTimeoutMs: 120_000 });
    expect(embedder.worker.maxLength).toBeUndefined();
    expect(embedder.worker.batchRows).toBeUndefined();
  });

  test("values reach the worker, also above 255", async () => {
    const embedder = await onlyEmbedder(
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

describe("rerankers", () => {
  test("share the limits of the queue, and have their own of the batch", async () => {
    const { embedder, reranker } = await settings(
      "-m owner/embedder --reranker-model owner/ranker --rerank-batch-size 4 --embedding-batch-size 2 --embedding-queue-depth 3 --embedding-request-timeout-secs 7 -c 64".split(
        " ",
      ),
    );
    for (const model of [embedder, reranker]) {
      expect(model).toMatchObject({ queueDepth: 3, requestTimeoutMs: 7000 });
    }
    expect(embedder?.worker).toMatchObject({ kind: "embedding", batchRows: 2, maxLength: 64 });
    expect(reranker?.worker).toMatchObject({ kind: "reranker", batchRows: 4 });
    expect(reranker?.worker.maxLength).toBeUndefined();
  });

  test("alone they take the length limit; 0 pairs leaves the batch to the token budget", async () => {
    const { reranker } = await settings("-m owner/ranker -c 64 --rerank-batch-size 0".split(" "));
    expect(reranker?.worker).toMatchObject({ maxLength: 64 });
    expect(reranker?.worker.batchRows).toBeUndefined();
  });

  test("--rerank-scores raw makes logits the default", async () => {
    expect((await settings([])).rawScores).toBe(false);
    expect((await settings(["--rerank-scores", "raw"])).rawScores).toBe(true);
  });

  test("--pooling rank overrides no pooling", async () => {
    expect((await onlyEmbedder(["--pooling", "rank"])).worker.pooling).toBeUndefined();
    expect((await settings(["--pooling", "rank"])).embedderRanks).toBe(true);
  });
});

describe("access", () => {
  test("a host that ends in .sock is a unix socket", async () => {
    expect((await settings(["--host", "run/m.sock"])).listen).toEqual({ socketPath: "run/m.sock" });
    expect((await settings(["--host", "::1"])).listen).toEqual({ host: "::1", port: 8080 });
  });

  test("keys of the flag and of the file add up; comments and blank lines are none", async () => {
    expect(
      (await settings(["--api-key", "zero,one", "--api-key-file", join(root, "keys")])).apiKeys,
    ).toEqual(["zero", "one", "two"]);
  });

  test("a key file that is missing or empty stops the start", async () => {
    await expect(settings(["--api-key-file", join(root, "absent")])).rejects.toThrow(
      "absent: no such file",
    );
    await expect(settings(["--api-key-file", join(root, "no-keys")])).rejects.toThrow(
      "holds no key",
    );
  });

  test("a key file may be a pipe, as the shell's <(…) is", async () => {
    const pipe = join(root, "pipe");
    Bun.spawnSync(["mkfifo", pipe]);
    const writer = Bun.spawn(["sh", "-c", 'echo from-a-pipe > "$0"', pipe]);
    expect((await settings(["--api-key-file", pipe])).apiKeys).toEqual(["from-a-pipe"]);
    await writer.exited;
  });

  test.each(["--api-key-file", "--ssl-cert-file", "--ssl-key-file"])(
    "%s that is a directory is named with its flag",
    async (flag) => {
      const file = join(root, "keys");
      const others = ["--ssl-cert-file", file, "--ssl-key-file", file];
      const start = () => settings([...(flag.startsWith("--ssl") ? others : []), flag, root]);
      await expect(start()).rejects.toThrow(`${flag} ${root}: is a directory, not a file`);
    },
  );

  test.each([
    "-----BEGIN ENCRYPTED PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED",
  ])("a key that needs a passphrase is told apart: %s", async (head) => {
    const key = join(root, "encrypted.pem");
    writeFileSync(key, `${head}\nMIIF\n`);
    const start = () => settings(["--ssl-cert-file", join(root, "keys"), "--ssl-key-file", key]);
    await expect(start()).rejects.toThrow("encrypted.pem is encrypted");
    await expect(start()).rejects.toThrow("openssl pkey -in");
  });

  test("certificate and key go together", async () => {
    const file = join(root, "keys");
    await expect(settings(["--ssl-cert-file", file])).rejects.toThrow(UsageError);
    await expect(settings(["--ssl-key-file", file])).rejects.toThrow("--ssl-cert-file");
    await expect(
      settings(["--ssl-key-file", file, "--ssl-cert-file", "absent.pem"]),
    ).rejects.toThrow("--ssl-cert-file absent.pem: no such file");
    expect((await settings(["--ssl-key-file", file, "--ssl-cert-file", file])).tls).toMatchObject({
      certFile: file,
      keyFile: file,
      key: expect.stringContaining("one"),
    });
  });

  test("* among the origins means every origin", async () => {
    expect((await settings([])).corsOrigins).toBeUndefined();
    expect((await settings(["--cors-origins", "*"])).corsOrigins).toBeUndefined();
    expect((await settings(["--cors-origins", "https://a.example"])).corsOrigins).toEqual([
      "https://a.example",
    ]);
  });
});

test("a model that the flags for kinds switch off is named in a notice", async () => {
  const both = ["-m", "owner/embedder", "--reranker-model", "owner/ranker"];
  expect((await settings([...both, "--rerank"])).notices).toEqual([
    "--rerank serves ranking only (add --embedding for both): -m owner/embedder is not loaded",
  ]);
});

test("flags without effect are named in one notice, each once", async () => {
  expect((await settings("-np 1 --no-webui -np 2".split(" "))).notices).toEqual([
    "accepted without effect: -np, --no-webui",
  ]);
  expect((await settings([])).notices).toEqual([]);
});
