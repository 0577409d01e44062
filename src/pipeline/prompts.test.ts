import { expect, test } from "bun:test";
import { knownPromptNames, promptText } from "./prompts.ts";

const prompts = { query: "query: ", title: "title: " };
const withDefault = { prompts, defaultPromptName: "title" };

test("a request without a choice gets the default prompt, or none", () => {
  expect(promptText({ prompts }, {})).toBe("");
  expect(promptText(withDefault, {})).toBe("title: ");
});

test("a name beats the default", () => {
  expect(promptText(withDefault, { promptName: "query" })).toBe("query: ");
});

test("query and document are always valid and add nothing where the checkpoint has no such prompt", () => {
  expect(promptText(withDefault, { promptName: "document" })).toBe("");
  expect(promptText({ prompts: {} }, { promptName: "query" })).toBe("");
});

test("synonyms mean query and document, unless the checkpoint has a prompt of that very name", () => {
  const document = { prompts: { document: "passage: " } };
  expect(promptText({ prompts }, { promptName: "search_query" })).toBe("query: ");
  expect(promptText(document, { promptName: "search_document" })).toBe("passage: ");
  expect(promptText(document, { promptName: "passage" })).toBe("passage: ");
  const own = { prompts: { ...prompts, search_query: "own: " } };
  expect(promptText(own, { promptName: "search_query" })).toBe("own: ");
});

test("an unknown name is refused with the list of known ones", () => {
  expect(() => promptText({ prompts }, { promptName: "code" })).toThrow(
    'unknown prompt "code" (known: query, title, document, search_query, search_document, passage)',
  );
});

test.each(["toString", "__proto__", "constructor"])("%s is not a prompt", (promptName) => {
  expect(() => promptText({ prompts }, { promptName })).toThrow(RangeError);
});

test("every known name is accepted", () => {
  for (const promptName of knownPromptNames(Object.keys(prompts))) {
    expect(() => promptText({ prompts }, { promptName })).not.toThrow();
  }
});

test("an instruction beats the name where the family has a format, and is ignored elsewhere", () => {
  const choice = { instruction: "find it", promptName: "query" };
  const family = { prompts, instructionPrompt: (task: string) => `Instruct: ${task}\n` };
  expect(promptText(family, choice)).toBe("Instruct: find it\n");
  expect(promptText(family, { ...choice, instruction: " \n" })).toBe("query: ");
  expect(promptText({ prompts }, choice)).toBe("query: ");
});
