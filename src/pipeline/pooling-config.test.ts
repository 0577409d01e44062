import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { readPooling } from "./pooling-config.ts";

function read(config: Record<string, unknown>) {
  const directory = temporaryDirectory("pooling");
  writeFileSync(join(directory, "config.json"), JSON.stringify(config));
  return readPooling(directory);
}

test("the newer spelling: one mode or a list in its own order", () => {
  expect(read({ pooling_mode: "cls", include_prompt: false })).toEqual({
    modes: ["cls"],
    includePrompt: false,
  });
  expect(read({ pooling_mode: "mean_sqrt_len_tokens" }).modes).toEqual(["mean_sqrt_len"]);
  expect(read({ pooling_mode: ["lasttoken", "max"] }).modes).toEqual(["lasttoken", "max"]);
});

test("the older spelling: every true key, in a fixed order", () => {
  const all = {
    pooling_mode_lasttoken: true,
    pooling_mode_weightedmean_tokens: true,
    pooling_mode_mean_sqrt_len_tokens: true,
    pooling_mode_mean_tokens: true,
    pooling_mode_max_tokens: true,
    pooling_mode_cls_token: true,
  };
  expect(read(all)).toEqual({
    modes: ["cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken"],
    includePrompt: true,
  });
  expect(read({ ...all, pooling_mode_max_tokens: false }).modes).not.toContain("max");
});

test("the newer spelling wins over the older one", () => {
  expect(read({ pooling_mode: "cls", pooling_mode_mean_tokens: true }).modes).toEqual(["cls"]);
});

test("no mode at all means mean", () => {
  expect(read({ pooling_mode_mean_tokens: false })).toEqual({
    modes: ["mean"],
    includePrompt: true,
  });
});

test("an unknown mode stops the load by name", () => {
  expect(() => read({ pooling_mode: "attention" })).toThrow(
    /config\.json: .*"attention".*known: cls/,
  );
  expect(() => read({ pooling_mode: ["mean", "sum"] })).toThrow(/"sum"/);
  expect(() => read({ pooling_mode_sum_tokens: true })).toThrow(/pooling_mode_sum_tokens/);
});
