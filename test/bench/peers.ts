/** The servers of the comparison and how they are started. */
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { freePort, startServer, type StartedServer } from "../../src/cli/bench/started-server.ts";
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

/** `python` has the packages of infinity-requirements.txt. */
export function startInfinity(
  python: string,
  { embedder, reranker }: BenchModels,
): Promise<StartedServer> {
  const port = freePort();
  const [model, rerankModel] = ["embedder", "reranker"];
  const command = [
    ...[join(dirname(python), "infinity_emb"), "v2", "--host", "127.0.0.1", "--port", `${port}`],
    ...["--url-prefix", "/v1", "--engine", "torch", "--device", "cpu", "--dtype", "float32"],
    ...["--no-bettertransformer", "--no-compile", "--no-model-warmup"],
    ...["--model-id", embedder, "--served-model-name", model],
    ...["--model-id", reranker, "--served-model-name", rerankModel],
  ];
  return startServer({
    ...{ name: "infinity", command, port, model, rerankModel },
    env: {
      ...{ ...env, INFINITY_ANONYMOUS_USAGE_STATS: "0", DO_NOT_TRACK: "1" },
      OMP_NUM_THREADS: `${availableParallelism()}`,
    },
  });
}

const LLAMA_SLOTS = 32;
const LLAMA_BATCH_TOKENS = 4096;

/**
 * The llama-server in PATH with a GGUF file of the embedder. It is not asked to rank: llama.cpp leaves out the dense
 * layer before a BERT classifier and takes both texts of a pair as the first, so its scores are others.
 */
export function startLlama(gguf: string): Promise<StartedServer> {
  const port = freePort();
  const threads = `${availableParallelism()}`;
  const command = [
    ...["llama-server", "--host", "127.0.0.1", "--port", `${port}`, "-m", gguf],
    ...["--embedding", "--pooling", "mean"],
    ...["-t", threads, "-tb", threads, "-np", `${LLAMA_SLOTS}`, "-c", `${LLAMA_SLOTS * 512}`],
    ...["-b", `${LLAMA_BATCH_TOKENS}`, "-ub", `${LLAMA_BATCH_TOKENS}`, "--no-webui"],
  ];
  return startServer({ name: "llama-server", command, port, env });
}
