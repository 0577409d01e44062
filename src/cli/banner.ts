import type { EmbedderInfo, ModelInfo, RerankerInfo } from "../worker/job.ts";
import type { ModelSettings, ServeSettings } from "./settings.ts";
import { VERSION } from "./version.ts";

/** What the workers say of the models they have loaded. */
export interface LoadedModels {
  readonly embedder?: EmbedderInfo | undefined;
  readonly reranker?: RerankerInfo | undefined;
}

type Row = readonly [label: string, text: string];

/** What the user sees once the models answer: what is served, where, and lines to try it with. */
export function banner(
  settings: ServeSettings,
  models: LoadedModels,
  url: string,
  colour: boolean,
): string {
  const bold = (text: string) => (colour ? `\u001b[1m${text}\u001b[0m` : text);
  const { embedder, reranker } = models;
  const rows: readonly Row[] = [
    ...(settings.embedder && embedder ? embedderRows(settings, settings.embedder, embedder) : []),
    ...(settings.reranker && reranker ? rerankerRows(settings.reranker, reranker) : []),
    ...deviceRows(embedder ?? reranker),
    ["url", url],
  ];
  const table = rows.map(([label, text]) => `  ${label.padEnd(12)}${text}\n`).join("");
  const tries = curlLines(settings, url).map((line) => `  ${line}\n`);
  return `${bold(`mlxcel ${VERSION}`)}\n${table}\n${tries.join("")}\n`;
}

function embedderRows(
  { embedderRanks }: ServeSettings,
  { id, isDefault }: ModelSettings,
  info: EmbedderInfo,
): Row[] {
  const ranking = info.multiVector
    ? "by this embedder too, late interaction"
    : "by this embedder too, cosine of query and document";
  return [
    ["model", modelText(id, info, isDefault)],
    ["dim", String(info.dim)],
    ["max length", `${info.maxLength} tokens`],
    ["pooling", `${poolingText(info)}, normalization ${info.normalization}`],
    ["batch", batchText(info)],
    ...(embedderRanks ? [["ranking", ranking] as const] : []),
  ];
}

function rerankerRows({ id }: ModelSettings, info: RerankerInfo): Row[] {
  return [
    ["reranker", modelText(id, info, false)],
    ["max length", `${info.maxLength} tokens per pair`],
    ["batch", batchText(info)],
  ];
}

/** All models run on the same one, with the same precision. */
function deviceRows(info: ModelInfo | undefined): Row[] {
  if (!info) return [];
  return [["device", info.device + (info.cpuPrecision === "bf16" ? ", bf16 products" : "")]];
}

function poolingText({ pooling, multiVector }: EmbedderInfo): string {
  return multiVector ? `${pooling}: a vector per token` : pooling;
}

/** The limit that the user set, and apart from it the slices that follow from the measured pace. */
function batchText({ batchTokens, sliceTokens, maxLength }: ModelInfo): string {
  const whole = batchTokens < maxLength ? "; a longer text runs alone, and whole" : "";
  const slices =
    sliceTokens < batchTokens
      ? `; long requests about ${sliceTokens} at a time, so that short ones go in between`
      : "";
  return `up to ${batchTokens} tokens${whole}${slices}`;
}

function modelText(id: string, info: ModelInfo, isDefault: boolean): string {
  return `${id} (${info.family}, ${info.storedDtype}${isDefault ? ", the default" : ""})`;
}

/** Addresses that stand for every interface can be listened on, not called. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
}

/** Commands that can be pasted; a key is left to the reader. */
function curlLines(settings: ServeSettings, url: string): string[] {
  const { listen, apiKeys, tls, embedder, reranker, embedderRanks } = settings;
  const options = [
    ...("socketPath" in listen ? [`--unix-socket ${listen.socketPath}`] : []),
    // -k: a certificate made for testing is signed by nobody that curl knows
    ...(tls ? ["-k"] : []),
    ...(apiKeys.length > 0 ? ["-H 'Authorization: Bearer YOUR_KEY'"] : []),
  ];
  const target = "socketPath" in listen ? "http://localhost" : reachable(url);
  const curl = (path: string, body: string) =>
    ["curl", ...options, `${target}${path}`, `-d '${body}'`].join(" ");
  return [
    ...(embedder ? [curl("/v1/embeddings", '{"input": "Hello, world"}')] : []),
    ...(reranker || embedderRanks
      ? [
          curl(
            "/v1/rerank",
            '{"query": "What purrs?", "documents": ["The cat sleeps.", "It rains."]}',
          ),
        ]
      : []),
  ];
}
