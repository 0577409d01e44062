/** The servers of the comparison and how they are started. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { freePort, startServer, type StartedServer } from "../../src/cli/bench/started-server.ts";
import type { Target } from "../../src/cli/bench/target.ts";
import type { BenchModels } from "./models.ts";

const env = {
  ...process.env,
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
  TOKENIZERS_PARALLELISM: "false",
};

function script(name: string): string {
  return join(import.meta.dir, name);
}

export function startSentenceTransformers(
  python: string,
  { embedder, reranker }: BenchModels,
): Promise<StartedServer> {
  const port = freePort();
  const command = [python, script("sentence_transformers_server.py"), `${port}`];
  return startServer({
    name: "sentence-transformers + FastAPI",
    command: [...command, embedder, reranker],
    port,
    env,
  });
}

export function startOnnxruntime(
  python: string,
  { embedder, embedderOnnx, rerankerOnnx }: BenchModels,
): Promise<StartedServer> {
  const port = freePort();
  const command = [python, script("onnxruntime_server.py"), `${port}`];
  return startServer({
    name: "ONNX Runtime + FastAPI",
    command: [...command, embedderOnnx, rerankerOnnx, join(embedder, "tokenizer.json")],
    port,
    env,
  });
}

/** The llama-server in PATH with a GGUF file of the embedder. */
export function startLlamaEmbedder(gguf: string): Promise<StartedServer> {
  return startLlama(["--embedding", "--pooling", "mean", "-m", gguf]);
}

/** The same with one of the reranker: llama-server ranks in a process of its own. */
export function startLlamaReranker(gguf: string): Promise<StartedServer> {
  return startLlama(["--reranking", "-m", gguf], isHealthy);
}

const LLAMA_SLOTS = 32;
const LLAMA_BATCH_TOKENS = 4096;

function startLlama(
  flags: readonly string[],
  isReady?: (target: Target) => Promise<boolean>,
): Promise<StartedServer> {
  const port = freePort();
  const threads = `${availableParallelism()}`;
  const command = [
    ...["llama-server", "--host", "127.0.0.1", "--port", `${port}`, ...flags],
    ...["-t", threads, "-tb", threads, "-np", `${LLAMA_SLOTS}`, "-c", `${LLAMA_SLOTS * 512}`],
    ...["-b", `${LLAMA_BATCH_TOKENS}`, "-ub", `${LLAMA_BATCH_TOKENS}`, "--no-webui"],
  ];
  return startServer({ name: "llama-server", command, port, env, ...(isReady && { isReady }) });
}

async function isHealthy({ url }: Target): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false; // not listening yet
  }
}
