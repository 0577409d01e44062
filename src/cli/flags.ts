/**
 * The one table of the server's flags. The parser, `--help`, the README's table and the type of the parsed settings
 * all come from it: to add a flag, add a row.
 */
import { z } from "zod";
import { DEFAULT_MODEL } from "../hub/resolve.ts";
import { flag, flagsOf, type FlagTable } from "./flag-table.ts";
import { IGNORED_FLAGS, UNAVAILABLE_FLAGS } from "./foreign-flags.ts";
import {
  byteSize,
  commaList,
  largestOrAuto,
  onOff,
  oneOf,
  origins,
  revision,
  text,
  wholeNumber,
} from "./values.ts";

/** Reads the raw texts of all flags, keyed by the flag's name in camel case, into typed settings. */
export const flagsSchema = z.object({
  model: flag(text("a directory or a repository name").optional(), {
    group: "Model",
    placeholder: "NAME",
    aliases: ["-m", "-hf", "-hfr", "--hf-repo"],
    llamaEnv: ["LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO"],
    help: `Model to serve: a directory, a GGUF file, or a repository <owner>/<name>, downloaded where it is not here yet; <owner>/<name>:Q8_0 is one of its GGUF files. Without any model flag: ${DEFAULT_MODEL}.`,
  }),
  embeddingModel: flag(text("a directory or a repository name").optional(), {
    group: "Model",
    placeholder: "NAME",
    help: "Model that answers embedding requests; must be an embedder.",
  }),
  rerankerModel: flag(text("a directory or a repository name").optional(), {
    group: "Model",
    placeholder: "NAME",
    help: "Model that answers rerank requests: a classifier with one label, or a generative reranker of the Qwen3 kind.",
  }),
  alias: flag(commaList("one or more names, separated by commas").optional(), {
    group: "Model",
    placeholder: "NAMES",
    aliases: ["-a"],
    llamaEnv: ["LLAMA_ARG_ALIAS"],
    repeats: true,
    help: "More names that requests may use for the -m model, else for the only model, else for the embedder; separated by commas.",
  }),
  modelsDir: flag(text("a directory").optional(), {
    group: "Model",
    placeholder: "DIR",
    llamaEnv: ["LLAMA_ARG_MODELS_DIR"],
    help: "Local store, holding <owner>/<name> directories. Default: mlxcel/models in $XDG_CACHE_HOME or ~/.cache.",
  }),
  revision: flag(revision().optional(), {
    group: "Model",
    placeholder: "REVISION",
    help: "Branch, tag or commit of the repositories. Default: what is here, else main.",
  }),
  hfToken: flag(text("a token").optional(), {
    group: "Model",
    placeholder: "TOKEN",
    aliases: ["-hft"],
    llamaEnv: ["HF_TOKEN"],
    secret: true,
    help: "For repositories that are private or gated. Default: the one that hf auth login has stored.",
  }),
  offline: flag(onOff(), {
    group: "Model",
    llamaEnv: ["LLAMA_ARG_OFFLINE", "HF_HUB_OFFLINE"],
    help: "Never use the network to find a model.",
  }),
  embedding: flag(onOff(), {
    group: "Embeddings",
    aliases: ["--embeddings"],
    llamaEnv: ["LLAMA_ARG_EMBEDDINGS"],
    help: "Serve embeddings; rerank requests are refused, unless --rerank is given too.",
  }),
  embeddingMaxLength: flag(wholeNumber(0), {
    group: "Embeddings",
    placeholder: "TOKENS",
    aliases: ["-c", "--ctx-size"],
    llamaEnv: ["LLAMA_ARG_CTX_SIZE"],
    default: "0",
    help: "Longest text in tokens (without an embedder: longest pair). Can only lower the model's own limit; 0 keeps that.",
  }),
  truncate: flag(oneOf(["on", "error"]), {
    group: "Embeddings",
    placeholder: "on|error",
    shortcuts: { "--no-truncate": "error" },
    default: "on",
    help: "Over-long texts: cut them, or refuse the request. The last of these flags wins; a request's own `truncate` beats them.",
  }),
  pooling: flag(oneOf(["mean", "cls", "last", "max", "rank"]).optional(), {
    group: "Embeddings",
    placeholder: "mean|cls|last|max|rank",
    llamaEnv: ["LLAMA_ARG_POOLING"],
    help: "How token vectors become one vector; rank is the same as --rerank. Default: what the model's files say.",
  }),
  embdNormalize: flag(wholeNumber(-1).optional(), {
    group: "Embeddings",
    placeholder: "N",
    help: "Normalisation: -1 none, 0 largest component to 32760, 1 L1, 2 L2, N > 2 the N-norm. Default: what the model's files say.",
  }),
  embeddingBatchSize: flag(wholeNumber(0), {
    group: "Embeddings",
    placeholder: "ROWS",
    default: "0",
    help: "Hard cap on the texts in one forward pass; 0 leaves it to --batch-tokens.",
  }),
  batchTokens: flag(largestOrAuto(), {
    group: "Embeddings",
    placeholder: "auto|TOKENS",
    aliases: ["-b", "--batch-size", "-ub", "--ubatch-size"],
    llamaEnv: ["LLAMA_ARG_BATCH", "LLAMA_ARG_UBATCH"],
    repeats: true,
    default: "auto",
    help: "Tokens in one forward pass; auto (or 0) is 16 texts, or 8 pairs, of full length. Of several values the largest counts.",
  }),
  embeddingQueueDepth: flag(wholeNumber(0), {
    group: "Embeddings",
    placeholder: "REQUESTS",
    default: "8",
    help: "Requests that may wait for a model, rerankers included; one more is refused with 503. 0 means the default.",
  }),
  embeddingRequestTimeoutSecs: flag(wholeNumber(0, 2_000_000), {
    group: "Embeddings",
    placeholder: "SECONDS",
    default: "120",
    help: "A request without an answer by then ends with 504. 0 means the default.",
  }),
  rerank: flag(onOff(), {
    group: "Reranking",
    aliases: ["--reranking"],
    llamaEnv: ["LLAMA_ARG_RERANKING"],
    help: "Serve ranking. With a reranker: nothing else, unless --embedding is given too. Without one the embedder ranks as well.",
  }),
  rerankBatchSize: flag(wholeNumber(0), {
    group: "Reranking",
    placeholder: "PAIRS",
    default: "0",
    help: "Hard cap on the pairs of query and document in one forward pass; 0 leaves it to --batch-tokens.",
  }),
  rerankScores: flag(oneOf(["sigmoid", "raw"]), {
    group: "Reranking",
    placeholder: "sigmoid|raw",
    default: "sigmoid",
    help: "Scores from 0 to 1, or the model's own numbers (logits). A request's own `raw_scores` beats it.",
  }),
  host: flag(text("a host name, an address or a path ending in .sock"), {
    group: "Server",
    placeholder: "HOST",
    llamaEnv: ["LLAMA_ARG_HOST"],
    default: "127.0.0.1",
    help: "Address to listen on; a path ending in .sock is a unix socket.",
  }),
  port: flag(wholeNumber(0, 65535), {
    group: "Server",
    placeholder: "PORT",
    llamaEnv: ["LLAMA_ARG_PORT"],
    default: "8080",
    help: "Port to listen on; 0 takes a free one.",
  }),
  maxBodySize: flag(byteSize(1), {
    group: "Server",
    placeholder: "SIZE",
    default: "64MiB",
    help: "Largest request body; a larger one is refused with 413.",
  }),
  maxInputs: flag(wholeNumber(0), {
    group: "Server",
    placeholder: "ITEMS",
    default: "0",
    help: "Most texts or documents in one request; one with more is refused with 400. 0: no limit.",
  }),
  maxTokensPerRequest: flag(wholeNumber(0), {
    group: "Server",
    placeholder: "TOKENS",
    default: "0",
    help: "Most tokens in one request, after over-long texts are cut; one with more is refused with 400. 0: no limit.",
  }),
  metrics: flag(onOff(), {
    group: "Server",
    llamaEnv: ["LLAMA_ARG_ENDPOINT_METRICS"],
    help: "Serve Prometheus metrics at /metrics.",
  }),
  apiKey: flag(commaList("one or more keys, separated by commas").optional(), {
    group: "Access",
    placeholder: "KEYS",
    llamaEnv: ["LLAMA_API_KEY"],
    repeats: true,
    secret: true,
    help: "Keys that requests must present, separated by commas.",
  }),
  apiKeyFile: flag(text("a file").optional(), {
    group: "Access",
    placeholder: "FILE",
    llamaEnv: ["LLAMA_ARG_API_KEY_FILE"],
    help: "File with one key per line; lines that start with # are comments.",
  }),
  corsOrigins: flag(origins().optional(), {
    group: "Access",
    placeholder: "ORIGINS",
    llamaEnv: ["LLAMA_ARG_CORS_ORIGINS"],
    repeats: true,
    help: "Web origins that may call the server, separated by commas. Default: every origin.",
  }),
  sslCertFile: flag(text("a file").optional(), {
    group: "Access",
    placeholder: "FILE",
    llamaEnv: ["LLAMA_ARG_SSL_CERT_FILE"],
    help: "Certificate (PEM) for HTTPS; goes with --ssl-key-file.",
  }),
  sslKeyFile: flag(text("a file").optional(), {
    group: "Access",
    placeholder: "FILE",
    llamaEnv: ["LLAMA_ARG_SSL_KEY_FILE"],
    help: "Private key (PEM) for HTTPS; goes with --ssl-cert-file.",
  }),
  device: flag(oneOf(["auto", "gpu", "cpu"]), {
    group: "Resources",
    placeholder: "auto|gpu|cpu",
    default: "auto",
    help: "Where the model runs; auto is the GPU where Metal is available, else the CPU.",
  }),
  cpuDequantize: flag(oneOf(["auto", "on", "off"]), {
    group: "Resources",
    placeholder: "auto|on|off",
    default: "auto",
    help: "Quantised weights on the CPU: on converts them to f32 at load, off keeps them small, which is slow. auto converts where three quarters of the free memory suffice. The GPU computes with them as they are.",
  }),
  cpuPrecision: flag(oneOf(["f32", "bf16"]), {
    group: "Resources",
    placeholder: "f32|bf16",
    default: "f32",
    help: "Matrix products on the CPU: bf16 rounds both factors and sums in f32, which halves the weights and moves results; needs a CPU with AVX512-BF16. `mlxcel bench --cpu-precision bf16` measures speed and fidelity.",
  }),
  memoryLimit: flag(byteSize(2 ** 20).optional(), {
    group: "Resources",
    placeholder: "SIZE",
    help: "Memory that MLX tries to stay below. Default: MLX's own.",
  }),
  cacheLimit: flag(byteSize(0), {
    group: "Resources",
    placeholder: "SIZE",
    default: "32MiB",
    help: "Freed memory that MLX keeps for reuse; 0 keeps none.",
  }),
  logFormat: flag(oneOf(["text", "json"]), {
    group: "Logs",
    placeholder: "text|json",
    default: "text",
    help: "Shape of the log lines on stderr.",
  }),
  logLevel: flag(oneOf(["debug", "info", "warn", "error"]), {
    group: "Logs",
    placeholder: "debug|info|warn|error",
    shortcuts: { "-v": "debug", "--verbose": "debug", "--log-verbose": "debug" },
    default: "info",
    help: "The least important lines that are still written.",
  }),
  version: flag(onOff(), { group: "Other", noEnv: true, help: "Print the version and exit." }),
  help: flag(onOff(), {
    group: "Other",
    aliases: ["-h", "--usage"],
    noEnv: true,
    help: "Print this text and exit.",
  }),
});

export type Flags = z.output<typeof flagsSchema>;

export const FLAGS = flagsOf(flagsSchema);

export const SERVE: FlagTable<typeof flagsSchema> = {
  command: "mlxcel",
  schema: flagsSchema,
  flags: FLAGS,
  bareWord: "a model is named with -m",
  ignored: IGNORED_FLAGS,
  unavailable: UNAVAILABLE_FLAGS,
};
