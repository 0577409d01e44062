import { describe, expect, test } from "bun:test";
import { colourWanted, createLogger, type LoggerOptions } from "./log.ts";

function lines(options: LoggerOptions) {
  const written: string[] = [];
  return {
    logger: createLogger({ ...options, write: (line) => void written.push(line) }),
    written,
  };
}

describe("text", () => {
  test("one line: ISO time, level, message, fields that are set", () => {
    const { logger, written } = lines({ format: "text", level: "info" });
    logger.warn("queue full", { waiting: 8, model: "a b", missing: undefined });
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warn  queue full waiting=8 model="a b"\n$/,
    );
  });

  test("no text can forge a line or drive the terminal", () => {
    const { logger, written } = lines({ format: "text", level: "info" });
    logger.info("a\nb", { path: "/x\r\n\u001b[31m\u009b" });
    expect(written.join("").trimEnd()).not.toMatch(/\p{Cc}/u);
    expect(written.join("")).toContain("a\\u000ab");
  });

  test("colours only when asked for", () => {
    const plain = lines({ format: "text", level: "info" });
    const coloured = lines({ format: "text", level: "info", colour: true });
    plain.logger.error("x");
    coloured.logger.error("x");
    expect(plain.written.join("")).not.toContain("\u001b");
    expect(coloured.written.join("")).toContain("\u001b");
  });
});

describe("json", () => {
  test("one object per line; fields never replace time, level or message", () => {
    const { logger, written } = lines({ format: "json", level: "info" });
    logger.info("ready\n", { level: "fake", ms: 3, none: null });
    expect(written).toHaveLength(1);
    const entry: unknown = JSON.parse(written.join(""));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(entry).toEqual({ time, level: "info", message: "ready\n", ms: 3, none: null });
  });
});

test("lines below the level are not written", () => {
  const { logger, written } = lines({ format: "text", level: "warn" });
  logger.debug("d");
  logger.info("i");
  logger.warn("w");
  logger.error("e");
  expect(written).toHaveLength(2);
});

test("no colour where no terminal is", () => {
  expect(colourWanted({ isTTY: false })).toBe(false);
  expect(colourWanted({})).toBe(false);
});
