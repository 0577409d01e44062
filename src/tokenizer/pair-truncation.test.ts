import { expect, test } from "bun:test";
import { keptOfPair } from "./pair-truncation.ts";

function kept(first: number, second: number, limit: number): number[] {
  const lengths = keptOfPair({ first, second }, limit);
  return [lengths.first, lengths.second];
}

test("pairs within the limit are not cut", () => {
  expect(kept(3, 4, 7)).toEqual([3, 4]);
  expect(kept(0, 0, 0)).toEqual([0, 0]);
});

test("only the longer text is cut while it stays the longer one", () => {
  expect(kept(2, 20, 7)).toEqual([2, 5]);
  expect(kept(20, 2, 7)).toEqual([5, 2]);
  expect(kept(3, 20, 7)).toEqual([3, 4]);
});

test("two long texts get half each, the odd token goes to the longer or the second one", () => {
  expect(kept(20, 20, 7)).toEqual([3, 4]);
  expect(kept(20, 21, 7)).toEqual([3, 4]);
  expect(kept(21, 20, 7)).toEqual([4, 3]);
  expect(kept(20, 20, 8)).toEqual([4, 4]);
  expect(kept(4, 4, 7)).toEqual([3, 4]);
});

test("the rest is what removing tokens one at a time from the longer text leaves", () => {
  for (let limit = 0; limit < 12; limit++) {
    for (let first = 0; first < 15; first++) {
      for (let second = 0; second < 15; second++) {
        let [a, b] = [first, second];
        while (a + b > limit) {
          if (a > b || (a === b && first <= second)) a--;
          else b--;
        }
        expect([first, second, limit, ...kept(first, second, limit)]).toEqual([
          first,
          second,
          limit,
          a,
          b,
        ]);
      }
    }
  }
});
