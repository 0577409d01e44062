/** What is sent in each scenario, and by how many clients at a time. */
import { between, random, type CorpusWriter, type CountedText } from "./corpus.ts";

/** Kinds of requests. */
export type RequestKind = "short" | "batch32" | "batch64" | "rerank" | "long" | "long8";

interface EmbedRequest {
  readonly task: "embed";
  readonly texts: readonly string[];
  readonly tokens: number;
}

interface RerankRequest {
  readonly task: "rerank";
  readonly query: string;
  readonly documents: readonly string[];
  /** Of all pairs. */
  readonly tokens: number;
}

export type BenchRequest = EmbedRequest | RerankRequest;

/** Clients that send requests of one kind, each the next one as soon as its last one is answered. */
interface ClientGroup {
  readonly clients: number;
  readonly kind: RequestKind;
}

export interface Scenario {
  readonly name: ScenarioName;
  readonly title: string;
  /** Latency is that of the first group; throughput is that of all. */
  readonly groups: readonly [ClientGroup, ...ClientGroup[]];
  /** What a server is ranked by. */
  readonly figure: "requests/s" | "tokens/s";
  /** Runs so many times as long as the others. */
  readonly lengthFactor?: number;
}

export const SCENARIO_NAMES = ["a1", "a8", "a32", "b1", "b4", "c", "d1", "d4", "e1", "e8"] as const;
type ScenarioName = (typeof SCENARIO_NAMES)[number];

const SHORT = "short texts, 1 per request";
const BATCH = "32 passages of 20–200 tokens per request";
const RERANK = "1 query × 32 documents of ~100 tokens";

export const SCENARIOS: readonly Scenario[] = [
  scenario("a1", `${SHORT}, 1 client`, { clients: 1, kind: "short" }),
  scenario("a8", `${SHORT}, 8 clients`, { clients: 8, kind: "short" }),
  scenario("a32", `${SHORT}, 32 clients`, { clients: 32, kind: "short" }),
  scenario("b1", `${BATCH}, 1 client`, { clients: 1, kind: "batch32" }),
  scenario("b4", `${BATCH}, 4 clients`, { clients: 4, kind: "batch32" }),
  {
    name: "c",
    title: "58 clients with 1 short text, 6 with 64 passages",
    groups: [
      { clients: 58, kind: "short" },
      { clients: 6, kind: "batch64" },
    ],
    figure: "tokens/s",
    lengthFactor: 3,
  },
  scenario("d1", `${RERANK}, 1 client`, { clients: 1, kind: "rerank" }),
  scenario("d4", `${RERANK}, 4 clients`, { clients: 4, kind: "rerank" }),
  scenario("e1", "1 text of 512 tokens per request, 1 client", { clients: 1, kind: "long" }),
  scenario("e8", "8 texts of 512 tokens per request, 1 client", { clients: 1, kind: "long8" }),
];

function scenario(name: ScenarioName, title: string, group: ClientGroup): Scenario {
  const figure = group.kind === "short" ? "requests/s" : "tokens/s";
  return { name, title, groups: [group], figure };
}

export function isRerank({ groups: [{ kind }] }: Scenario): boolean {
  return kind === "rerank";
}

/** The tokenizers' writers, and the longest texts that the models read whole. */
export interface Corpus {
  readonly embed: CorpusWriter;
  readonly maxTokens: number;
  readonly rerank?: RerankCorpus | undefined;
}

interface RerankCorpus {
  readonly writer: CorpusWriter;
  /** Of query and document together. */
  readonly maxPairTokens: number;
}

const SHORT_TEXTS = 4096;
const LONG_TEXTS = 64;
const LONG_TOKENS = 512;

/** The requests of one kind; a run goes through them in turn. The same ones for the same tokenizer. */
export async function requestsOf(kind: RequestKind, corpus: Corpus): Promise<BenchRequest[]> {
  const { embed, maxTokens } = corpus;
  const long = Math.min(LONG_TOKENS, maxTokens);
  const passage = [Math.min(20, maxTokens), Math.min(200, maxTokens)] as const;
  switch (kind) {
    case "short":
      return embedRequests(embed, { seed: 1, count: SHORT_TEXTS, size: 1, tokens: [6, 9] });
    case "batch32":
      return embedRequests(embed, { seed: 2, count: 16, size: 32, tokens: passage });
    case "batch64":
      return embedRequests(embed, { seed: 3, count: 8, size: 64, tokens: passage });
    case "rerank":
      return rerankRequests(corpus);
    case "long":
      return embedRequests(embed, { seed: 5, count: LONG_TEXTS, size: 1, tokens: [long, long] });
    case "long8":
      return embedRequests(embed, { seed: 6, count: 8, size: 8, tokens: [long, long] });
  }
}

interface EmbedShape {
  readonly seed: number;
  readonly count: number;
  /** Texts per request. */
  readonly size: number;
  /** From the shortest to the longest text. */
  readonly tokens: readonly [number, number];
}

async function embedRequests(
  writer: CorpusWriter,
  { seed, count, size, tokens: [least, most] }: EmbedShape,
): Promise<EmbedRequest[]> {
  const next = random(seed);
  const requests: EmbedRequest[] = [];
  for (let i = 0; i < count; i++) {
    const texts: CountedText[] = [];
    while (texts.length < size) texts.push(await writer.text(next, between(next, least, most)));
    const tokens = texts.reduce((sum, text) => sum + text.tokens, 0);
    requests.push({ task: "embed", texts: texts.map(({ text }) => text), tokens });
  }
  return requests;
}

const RERANK_REQUESTS = 8;
const DOCUMENTS = 32;
const QUERY_TOKENS = [6, 9] as const;
const DOCUMENT_TOKENS = [85, 115] as const;

/** Tokens of the longest pair where no limit of the reranker shortens it. */
export const LONGEST_PAIR_TOKENS = QUERY_TOKENS[1] + DOCUMENT_TOKENS[1];

async function rerankRequests({ rerank }: Corpus): Promise<RerankRequest[]> {
  if (!rerank) throw new Error("no target ranks");
  const { writer, maxPairTokens } = rerank;
  const next = random(4);
  const requests: RerankRequest[] = [];
  for (let i = 0; i < RERANK_REQUESTS; i++) {
    const query = await writer.text(next, between(next, ...QUERY_TOKENS));
    const room = maxPairTokens - query.tokens;
    const documents: CountedText[] = [];
    while (documents.length < DOCUMENTS) {
      const tokens = Math.min(room, between(next, ...DOCUMENT_TOKENS));
      documents.push(await writer.text(next, tokens));
    }
    // [CLS] query [SEP] document [SEP]: one special less than two texts have
    const joined = query.tokens - Math.min(1, writer.specials);
    const tokens = documents.reduce((sum, document) => sum + document.tokens + joined, 0);
    requests.push({
      task: "rerank",
      query: query.text,
      documents: documents.map(({ text }) => text),
      tokens,
    });
  }
  return requests;
}

const SAMPLE_TOKENS = [6, 9, 20, 45, 110, 200, LONG_TOKENS];

/** Texts of all lengths, to compare what servers answer. */
export async function sampleTexts({ embed, maxTokens }: Corpus): Promise<string[]> {
  const next = random(7);
  const texts: string[] = [];
  for (const tokens of SAMPLE_TOKENS) {
    texts.push((await embed.text(next, Math.min(tokens, maxTokens))).text);
  }
  return texts;
}
