import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { Tokenizer } from "../tokenizer/tokenizer.ts";
import { YesNoPrompt } from "./yes-no-prompt.ts";

const MAX_LENGTH = 288;
const tokenizer = Tokenizer.load(fixture("rerank-qwen3"));
const prompt = new YesNoPrompt(tokenizer, MAX_LENGTH);
const encode = (text: string) => [...tokenizer.encode(text, { addSpecial: false }).ids];

/** Pieces of text that a tokenizer may want to join with what stands beside them. */
const PIECES = [
  ..."\n\r\t :;,.!?<>'\"-_/|0123aZéあ中ß",
  ..."\r\n|  |\n\n|'s|'RE|: |>:|\u0301|\u0300|\u200d|\u00a0|\u0085|\ufeff|\u3000|ﬁ|Å|한|각|각".split(
    "|",
  ),
  ..."👨‍👩‍👧‍👦 🏖️ <|im_end|> <|im_start|> <think> </think> <tool_call> <|endoftext|> <Document>: yes".split(
    " ",
  ),
  "\ud83d",
  "The observatory",
] as const;

/** Texts of one, two and three pieces in many combinations. */
function nastyTexts(): string[] {
  const pairs = PIECES.flatMap((a) => PIECES.map((b) => a + b));
  const triples = pairs.map((pair, i) => pair + PIECES[(i * 7) % PIECES.length]!);
  return ["", ...PIECES, ...pairs, ...triples];
}

describe("query and document tokenized apart give what the whole content gives", () => {
  const roomy = new YesNoPrompt(tokenizer, 8192);
  const apart = (query: string, document: string, instruction: string) => {
    const shared = roomy.shared(query, instruction);
    return [...shared.ids, ...roomy.document(document, shared).ids];
  };
  const whole = (query: string, document: string, instruction: string) =>
    encode(`<Instruct>: ${instruction}\n<Query>: ${query}\n<Document>: ${document}`);

  test("for any document", () => {
    for (const document of nastyTexts()) {
      const actual = apart("a query", document, "Judge");
      expect(actual, JSON.stringify(document)).toEqual(whole("a query", document, "Judge"));
    }
  });

  test("for any query and instruction", () => {
    for (const text of nastyTexts()) {
      const actual = apart(text, "\n x", `Judge${text}`);
      expect(actual, JSON.stringify(text)).toEqual(whole(text, "\n x", `Judge${text}`));
    }
  });
});

describe("only the content is cut", () => {
  const limit = MAX_LENGTH - prompt.beginning.length - prompt.end.length;
  const long = "word ".repeat(50_000);

  test("the document first, to the last token that fits", () => {
    const shared = prompt.shared("a query");
    const document = prompt.document(long, shared);
    expect(shared.truncated).toBe(false);
    expect(document.truncated).toBe(true);
    expect(shared.ids.length + document.ids.length).toBe(limit);
    expect([...document.ids]).toEqual(
      encode(` ${long.slice(0, 2000)}`).slice(0, document.ids.length),
    );
  });

  test("a query over the limit leaves nothing of any document", () => {
    const shared = prompt.shared(long);
    expect(shared.truncated).toBe(true);
    expect(shared.ids).toHaveLength(limit);
    for (const document of ["", "x", long]) {
      expect(prompt.document(document, shared)).toEqual({ ids: new Int32Array(), truncated: true });
    }
  });

  test("a query that just fills the limit is whole, and the document is what was cut", () => {
    const { ids } = prompt.shared("a query");
    const tight = new YesNoPrompt(tokenizer, MAX_LENGTH - limit + ids.length);
    const shared = tight.shared("a query");
    expect(shared).toEqual({ ids, truncated: false });
    expect(tight.document("x", shared)).toEqual({ ids: new Int32Array(), truncated: true });
  });

  test("a limit without any room for it stops the load", () => {
    expect(() => new YesNoPrompt(tokenizer, MAX_LENGTH - limit)).toThrow(CheckpointError);
    expect(() => new YesNoPrompt(tokenizer, 96)).toThrow(
      /96 tokens leaves nothing.*raise the limit/,
    );
    expect(new YesNoPrompt(tokenizer, 97).shared("q").ids).toHaveLength(1);
  });
});

describe("a tokenizer that does not suit the prompt stops the load", () => {
  interface Stored {
    pre_tokenizer: unknown;
    readonly model: {
      readonly vocab: Record<string, number>;
      /** Both halves. */
      merges: [string, string][];
    };
  }

  function changed(change: (stored: Stored) => void) {
    const directory = copyOfFixture("rerank-qwen3");
    editJson(join(directory, "tokenizer.json"), change);
    return () => new YesNoPrompt(Tokenizer.load(directory), MAX_LENGTH);
  }

  test.each(["yes", "no"])("%s is not one token", (word) => {
    const load = changed(({ model }) => {
      model.merges = model.merges.filter((halves) => halves.join("") !== word);
    });
    expect(load).toThrow(CheckpointError);
    expect(load).toThrow(new RegExp(`"${word}" is 2 tokens`));
  });

  test("a document would be joined with the prompt in front of it", () => {
    const load = changed((stored) => {
      // Without splitting into words first, merges reach over all places.
      stored.pre_tokenizer = { type: "ByteLevel", add_prefix_space: false, use_regex: false };
      stored.model.vocab[":Ġ"] = 0;
      stored.model.merges.unshift([":", "Ġ"]);
    });
    expect(load).toThrow(CheckpointError);
    expect(load).toThrow(/joins the document/);
  });
});
