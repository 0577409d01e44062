import type { ModelInfo } from "../../worker/job.ts";
import type { ServedModel } from "../dialect.ts";

/** What clients may send in one request; longer ones are split here all the same, so this is advice. */
const MAX_CLIENT_BATCH_SIZE = 2048;

interface TeiInfoOptions {
  /** What happens to over-long inputs when a request does not say. */
  readonly truncate: boolean;
  /** Most items of one request. */
  readonly maxItems: number;
  /** Version of this server. */
  readonly version: string;
}

/** The answer of GET /info, with the fields that clients of text-embeddings-inference read. */
export function teiInfo(
  { id, info }: ServedModel,
  { truncate, maxItems, version }: TeiInfoOptions,
) {
  return {
    model_id: id,
    model_sha: null,
    model_dtype: info.storedDtype,
    model_type: modelType(info),
    max_input_length: info.maxLength,
    max_client_batch_size: Math.min(maxItems, MAX_CLIENT_BATCH_SIZE),
    auto_truncate: truncate,
    version,
    sha: null,
    docker_label: null,
  };
}

function modelType(info: ModelInfo) {
  if (info.kind === "embedding") return { embedding: { pooling: info.pooling } };
  return { reranker: { id2label: { "0": "LABEL_0" }, label2id: { LABEL_0: 0 } } };
}
