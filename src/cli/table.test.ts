import { expect, test } from "bun:test";
import { shortText, tableText } from "./table.ts";

const COLUMNS = [
  { title: "n", align: "right" },
  { title: "text", align: "left" },
  { title: "", align: "left" },
] as const;

test("columns are aligned by what a terminal shows, wide characters included", () => {
  const rows = [
    ["1", "你好", "x"],
    ["20", "a", "y"],
  ];
  expect(tableText(COLUMNS, rows, false)).toBe(" n  text\n 1  你好  x\n20  a     y\n");
});

test("no cell can start a line or drive the terminal", () => {
  const table = tableText(COLUMNS, [["1", "a\nb\u001b[2J", "\u009b0m"]], false);
  expect(table).toBe("n  text\n1  a\\u000ab\\u001b[2J  \\u009b0m\n");
});

test("colours add nothing but colours", () => {
  const coloured = tableText(COLUMNS, [["1", "a", "b"]], true);
  expect(coloured).toContain("\u001b");
  expect(Bun.stripANSI(coloured)).toBe(tableText(COLUMNS, [["1", "a", "b"]], false));
});

test.each([
  ["short", 10, "short"],
  ["two\nlines\tand  blanks ", 40, "two lines and blanks"],
  ["abcdefghij", 5, "abcd…"],
  ["你好世界", 5, "你好…"],
  ["\u001b[31mred", 20, "�[31mred"],
])("%j in %d columns", (text, columns, expected) => {
  expect(shortText(text, columns)).toBe(expected);
});
