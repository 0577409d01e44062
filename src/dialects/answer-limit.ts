import { Failure } from "../worker/failure.ts";
import { itemCount } from "../worker/items.ts";
import { MAX_RESULT_FLOATS, type Job } from "../worker/job.ts";
import { vectorBytes } from "./answer-bytes.ts";
import type { RenderOptions, ServedModel } from "./dialect.ts";

/** Half of what one buffer may hold: an answer of unusually long numbers still fits. */
const MAX_ANSWER_BYTES = 2 ** 31;

/**
 * Refuses a request before it is queued if the model would work for an answer that is too big to be written.
 * @throws Failure("invalid") with the number of items that fit
 */
export function requireFits(job: Job, options: RenderOptions, { info }: ServedModel): void {
  if (job.kind !== "embed" || options.kind !== "vectors" || info.kind !== "embedding") return;
  const dim = job.dimensions ?? info.dim;
  const items = itemCount(job.items);
  const most = Math.floor(
    Math.min(MAX_RESULT_FLOATS / dim, MAX_ANSWER_BYTES / vectorBytes(dim, options.encoding)),
  );
  if (items <= most) return;
  const { name } = job.field;
  throw new Failure(
    "invalid",
    `${name} has ${items} items of ${dim} numbers: send at most ${most} items per request`,
    name,
  );
}
