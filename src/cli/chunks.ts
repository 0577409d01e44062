/** Long lists as several jobs, so that the user sees how far they have come. */
import { unpackItems } from "../worker/items.ts";
import type { EmbedItem, EmbedJob, EmbedResult, RerankJob, RerankResult } from "../worker/job.ts";

interface ChunkOptions<J, R> {
  /** Items per job. */
  readonly size: number;
  /** @param first the item of all with which the job begins */
  submit(job: J, first: number): Promise<R>;
  /** Called after each job with the items that are done. */
  onProgress(done: number): void;
}

/** One result for all items, in their order. */
export async function embedInChunks(
  job: EmbedJob,
  options: ChunkOptions<EmbedJob, EmbedResult>,
): Promise<EmbedResult> {
  const results = await eachChunk(job, options);
  const [{ dim, rowsPerItem }] = results;
  return {
    kind: "embed",
    vectors: joinedFloats(results.map(({ vectors }) => vectors)),
    dim,
    rowsPerItem: rowsPerItem && joinedInts(results.flatMap((result) => result.rowsPerItem ?? [])),
    tokens: joinedInts(results.map(({ tokens }) => tokens)),
    truncated: sum(results.map(({ truncated }) => truncated)),
  };
}

/** One result for all documents, in their order. */
export async function rerankInChunks(
  job: RerankJob,
  options: ChunkOptions<RerankJob, RerankResult>,
): Promise<RerankResult> {
  const results = await eachChunk(job, options);
  return {
    kind: "rerank",
    scores: joinedFloats(results.map(({ scores }) => scores)),
    rawScores: joinedFloats(results.map(({ rawScores }) => rawScores)),
    tokens: joinedInts(results.map(({ tokens }) => tokens)),
    truncated: sum(results.map(({ truncated }) => truncated)),
  };
}

async function eachChunk<J extends EmbedJob | RerankJob, R>(
  job: J,
  { size, submit, onProgress }: ChunkOptions<J, R>,
): Promise<[R, ...R[]]> {
  const items = unpackItems(job.items);
  const run = async (chunk: readonly EmbedItem[], done: number) => {
    const result = await submit({ ...job, items: chunk }, done);
    onProgress(done + chunk.length);
    return result;
  };
  const results: [R, ...R[]] = [await run(items.slice(0, size), 0)];
  for (let start = size; start < items.length; start += size) {
    results.push(await run(items.slice(start, start + size), start));
  }
  return results;
}

function joinedFloats(parts: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const joined = new Float32Array(sum(parts.map(({ length }) => length)));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function joinedInts(parts: readonly Int32Array[]): Int32Array<ArrayBuffer> {
  const joined = new Int32Array(sum(parts.map(({ length }) => length)));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
