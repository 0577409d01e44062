import type { EmbedJob } from "../../worker/job.ts";
import { answerBytes, totalTokens } from "../answer-bytes.ts";
import type { Dialect } from "../dialect.ts";
import { embedRequest } from "../embed-fields.ts";
import { parseItems } from "../input.ts";
import { JsonBuffer } from "../json-buffer.ts";
import { checkModel, validate } from "../request.ts";
import { eachItem, embedAnswer, writeBase64, writeRows } from "../vectors-json.ts";
import { embeddingsSchema } from "./schema.ts";

/** OpenAI's embeddings: `{object:"list", data:[{object, index, embedding}], model, usage}`. */
export const openaiEmbeddings: Dialect<EmbedJob> = {
  parse(body, context) {
    const fields = validate(embeddingsSchema, body);
    checkModel(fields.model, context.model);
    const items = parseItems(fields.input, "input", context.model.info.vocabSize);
    return embedRequest(fields, items, context);
  },

  render(anyResult, anyOptions) {
    const { result, options } = embedAnswer(anyResult, anyOptions);
    const { vectors, dim } = result;
    const json = new JsonBuffer(answerBytes(result, options));
    json.raw('{"object":"list","data":[');
    eachItem(result, (item, first, rows) => {
      json.raw(`${item > 0 ? "," : ""}{"object":"embedding","index":${item},"embedding":`);
      if (options.encoding === "base64") writeBase64(json, result, first, rows);
      else if (result.rowsPerItem) writeRows(json, result, first, rows);
      else json.floats(vectors, first * dim, (first + 1) * dim);
      json.raw("}");
    });
    const tokens = totalTokens(result);
    return json
      .raw(`],"model":${JSON.stringify(options.model)},`)
      .raw(`"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`)
      .finish();
  },
};
