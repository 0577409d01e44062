/** Parses big bodies and renders big answers, so that the HTTP thread stays free. Own thread; no state. */
import { renderBuffers, type ParsedRequest } from "../dialects/dialect.ts";
import { dialects } from "../dialects/table.ts";
import { Failure } from "../worker/failure.ts";
import { packedBuffers, packItems, unpackItems } from "../worker/items.ts";
import type { CodecOutcome, CodecTask, FromCodec, ToCodec } from "./codec-protocol.ts";
import { asFailure } from "./errors.ts";
import { parseJsonBody } from "./json-body.ts";

declare const self: Worker;

interface Reply {
  readonly outcome: CodecOutcome;
  readonly transfer: ArrayBuffer[];
}

self.onmessage = ({ data: { id, task } }: MessageEvent<ToCodec>) => {
  const { outcome, transfer } = reply(task);
  self.postMessage({ id, outcome } satisfies FromCodec, transfer);
};

function reply(task: CodecTask): Reply {
  try {
    const dialect = dialects[task.dialect];
    if (task.type === "parse") {
      return packed(dialect.parse(parseJsonBody(task.body), task.context));
    }
    const body = dialect.render(task.result, task.options);
    return { outcome: { type: "rendered", body }, transfer: [body.buffer] };
  } catch (error) {
    const fault = error instanceof Failure ? undefined : String(error);
    return { outcome: { type: "failed", failure: asFailure(error).toWire(), fault }, transfer: [] };
  }
}

/** Items travel on to the model worker without being decoded on the HTTP thread. */
function packed(request: ParsedRequest): Reply {
  const { job, render } = request;
  if (job.kind !== "embed" && job.kind !== "rerank") {
    return { outcome: { type: "parsed", request }, transfer: [] };
  }
  const items = packItems(unpackItems(job.items));
  return {
    outcome: { type: "parsed", request: { ...request, job: { ...job, items } } },
    transfer: [...packedBuffers(items), ...renderBuffers(render)],
  };
}
