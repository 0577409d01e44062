import { expect, test } from "bun:test";
import { z } from "zod";
import { CheckpointCopy, referenceCase } from "../../test/checkpoints.ts";
import { Tokenizer } from "./tokenizer.ts";

const { input, token_ids: closed } = referenceCase("mistral-embed", "short");
const text = String(input);
const open = closed.slice(0, -1);

const template = z.looseObject({ single: z.array(z.unknown()) });

/** A tokenizer.json that opens texts and does not close them, as that of E5-Mistral. */
function unclosed(config: Record<string, unknown>): () => Tokenizer {
  const copy = new CheckpointCopy("mistral-embed")
    .set("tokenizer_config.json", config)
    .edit("tokenizer.json", (file) => {
      const { single, ...rest } = template.parse(file.post_processor);
      return { ...file, post_processor: { ...rest, single: single.slice(0, -1) } };
    });
  return () => Tokenizer.load(copy.directory);
}

const idsWith = (config: Record<string, unknown>) => [...unclosed(config)().encode(text).ids];

test("add_eos_token closes texts that tokenizer.json leaves open", () => {
  expect(idsWith({ add_eos_token: true })).toEqual(closed);
  expect(idsWith({ add_eos_token: true, eos_token: { content: "</s>" } })).toEqual(closed);
  for (const off of [false, null, undefined]) expect(idsWith({ add_eos_token: off })).toEqual(open);
});

test("the closing token is counted, and stays where a text is cut", () => {
  const tokenizer = unclosed({ add_eos_token: true })();
  expect(tokenizer.singleSpecials).toBe(2);
  const { ids, truncated } = tokenizer.encode(text, { maxLength: 8 });
  expect([...ids]).toEqual([...closed.slice(0, 7), closed.at(-1)!]);
  expect(truncated).toBe(true);
});

test("a text that is closed already gets no second token", () => {
  const tokenizer = Tokenizer.load(new CheckpointCopy("mistral-embed").directory);
  expect([...tokenizer.encode(text).ids]).toEqual(closed);
});

test.each([[undefined], ["<nowhere>"]])("a closing token without an id is refused: %p", (token) => {
  const load = unclosed({ add_eos_token: true, eos_token: token });
  expect(load).toThrow(/tokenizer_config\.json: "add_eos_token" is set, but "eos_token" .* no id/);
});
