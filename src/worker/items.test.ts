import { expect, test } from "bun:test";
import { itemCount, packItems, unpackItems } from "./items.ts";

test("packed items come out as they went in, also where a text breaks the alignment of the ids behind it", () => {
  const items = [
    { text: "odd" },
    { ids: Int32Array.of(1, -2, 2 ** 31 - 1) },
    { text: "" },
    { text: "\ufeff你好 😀" },
  ];
  const packed = packItems(items);
  expect(itemCount(packed)).toBe(4);
  expect(unpackItems(packed)).toEqual(items);
});

test("stray halves of surrogate pairs become U+FFFD", () => {
  expect(unpackItems(packItems([{ text: "x\ud83d" }]))).toEqual([{ text: "x\ufffd" }]);
});
