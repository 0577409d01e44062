import { Failure } from "../../worker/failure.ts";
import type { DetokenizeJob, TokenizeJob } from "../../worker/job.ts";
import { answerBytes } from "../answer-bytes.ts";
import type { Dialect } from "../dialect.ts";
import { tokenIds } from "../input.ts";
import { JsonBuffer } from "../json-buffer.ts";
import { chooseModel, validate } from "../request.ts";
import { detokenizeSchema, tokenizeSchema } from "./schema.ts";

/** llama-server's `{content, add_special?, with_pieces?}` -> `{tokens:[…]}`. Without specials by default. */
export const llamaTokenize: Dialect<TokenizeJob> = {
  parse(body, context) {
    const fields = validate(tokenizeSchema, body);
    return {
      job: {
        kind: "tokenize",
        text: fields.content.toWellFormed(),
        addSpecial: fields.add_special ?? false,
        withPieces: fields.with_pieces ?? false,
      },
      render: { kind: "tokens" },
      modelKind: chooseModel(fields.model, context).kind,
    };
  },

  render(result, options) {
    if (result.kind !== "tokenize") {
      throw new Failure("internal", `the model answered "${result.kind}" instead of tokens`);
    }
    const { ids, pieces } = result;
    const tokens = pieces
      ? Array.from(ids, (id, i) => `{"id":${id},"piece":${JSON.stringify(pieces[i] ?? "")}}`)
      : ids;
    return new JsonBuffer(answerBytes(result, options))
      .raw(`{"tokens":[${tokens.join(",")}]}`)
      .finish();
  },
};

/** llama-server's `{tokens:[…]}` -> `{content}`. */
export const llamaDetokenize: Dialect<DetokenizeJob> = {
  parse(body, context) {
    const fields = validate(detokenizeSchema, body);
    const { kind, info } = chooseModel(fields.model, context);
    return {
      job: { kind: "detokenize", ids: tokenIds(fields.tokens, "tokens", info.vocabSize) },
      render: { kind: "tokens" },
      modelKind: kind,
    };
  },

  render(result, options) {
    if (result.kind !== "detokenize") {
      throw new Failure("internal", `the model answered "${result.kind}" instead of text`);
    }
    return new JsonBuffer(answerBytes(result, options))
      .raw(`{"content":${JSON.stringify(result.text)}}`)
      .finish();
  },
};
