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
    ["device", (embedder ?? reranker)?.device ?? ""],
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

function poolingText({ pooling, multiVector }: EmbedderInfo): string {
  return multiVector ? `${pooling}: a vector per token` : pooling;
}

function batchText({ batchTokens }: ModelInfo): string {
  return `long requests run ${batchTokens} tokens at a time, and short ones go in between`;
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
