import type { EmbedJob } from "../../worker/job.ts";
import { answerBytes } from "../answer-bytes.ts";
import type { Dialect } from "../dialect.ts";
import { embedRequest } from "../embed-fields.ts";
import { parseItems } from "../input.ts";
import { JsonBuffer } from "../json-buffer.ts";
import { validate } from "../request.ts";
import { eachItem, embedAnswer, writeRows } from "../vectors-json.ts";
import { embedSchema } from "./schema.ts";

const L2 = 2;
const NOT_AT_ALL = -1;

/**
 * text-embeddings-inference's `/embed`: `{inputs, …}` -> `[[…],…]`, one array per input. For multi-vector
 * models each entry is an array of rows.
 */
export const teiEmbed: Dialect<EmbedJob> = {
  parse(body, context) {
    const { normalize, inputs, ...fields } = validate(embedSchema, body);
    const items = parseItems(inputs, "inputs", context.model.info.vocabSize);
    if (typeof normalize !== "boolean") return embedRequest(fields, items, context);
    const embd_normalize = normalize ? L2 : NOT_AT_ALL;
    return embedRequest({ ...fields, embd_normalize }, items, context);
  },

  render(anyResult, anyOptions) {
    const { result, options } = embedAnswer(anyResult, anyOptions);
    const json = new JsonBuffer(answerBytes(result, options));
    if (!result.rowsPerItem) {
      writeRows(json, result, 0, result.tokens.length);
      return json.finish();
    }
    json.raw("[");
    eachItem(result, (item, first, rows) => {
      if (item > 0) json.raw(",");
      writeRows(json, result, first, rows);
    });
    return json.raw("]").finish();
  },
};
