import { expect, test } from "bun:test";
import {
  instructionPromptOf,
  spacedInstruction as spaced,
  tightInstruction as tight,
} from "./instruction-prompt.ts";

test("the checkpoint's own prompt shows the format, else the family has one", () => {
  const shown = (end: string) => ({ document: "", query: `Instruct: Find it\nQuery:${end}` });
  expect(instructionPromptOf(spaced, shown(""))).toBe(tight);
  expect(instructionPromptOf(tight, shown(" "))).toBe(spaced);
  for (const prompts of [{}, { query: "query: " }, shown(" {}"), shown("  ")]) {
    expect(instructionPromptOf(tight, prompts)).toBe(tight);
  }
  expect(instructionPromptOf(undefined, shown(" "))).toBeUndefined();
});

test("the formats differ by one blank", () => {
  expect(spaced("Find it")).toBe("Instruct: Find it\nQuery: ");
  expect(tight("Find it")).toBe("Instruct: Find it\nQuery:");
});
