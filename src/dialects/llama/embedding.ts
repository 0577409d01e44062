import type { EmbedJob } from "../../worker/job.ts";
import { answerBytes } from "../answer-bytes.ts";
import type { Dialect } from "../dialect.ts";
import { embedRequest } from "../embed-fields.ts";
import { parseItems } from "../input.ts";
import { JsonBuffer } from "../json-buffer.ts";
import { checkModel, validate } from "../request.ts";
import { eachItem, embedAnswer, writeBase64, writeRows } from "../vectors-json.ts";
import { embeddingSchema } from "./schema.ts";

/** llama-server's own embeddings: `[{index, embedding:[[…]]}]`. */
export const llamaEmbedding: Dialect<EmbedJob> = {
  parse(body, context) {
    const fields = validate(embeddingSchema, body);
    checkModel(fields.model, context.model);
    const hasInput = fields.input !== null && fields.input !== undefined;
    const hasContent = fields.content !== null && fields.content !== undefined;
    const name = hasContent && !hasInput ? "content" : "input";
    const items = parseItems(fields[name], name, context.model.info.vocabSize);
    return embedRequest(fields, items, context);
  },

  render(anyResult, anyOptions) {
    const { result, options } = embedAnswer(anyResult, anyOptions);
    const json = new JsonBuffer(answerBytes(result, options));
    json.raw("[");
    eachItem(result, (item, first, rows) => {
      json.raw(`${item > 0 ? "," : ""}{"index":${item},"embedding":`);
      if (options.encoding === "base64") writeBase64(json, result, first, rows);
      else writeRows(json, result, first, rows);
      json.raw("}");
    });
    return json.raw("]").finish();
  },
};
