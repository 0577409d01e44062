import type { Mask, RowLengths } from "./ragged.ts";

/** How far a mask lets a query see: place - before <= key <= place + after, where `place` is its own. */
export interface Reach {
  readonly before: number;
  readonly after: number;
}

export function reachOf(mask: Mask): Reach {
  switch (mask.kind) {
    case "full":
      return { before: Infinity, after: Infinity };
    case "causal":
      return { before: (mask.window ?? Infinity) - 1, after: 0 };
    case "window":
      return { before: mask.radius, after: mask.radius };
  }
}

/** Throws RangeError where a query would see no key, as a softmax over nothing has no value. */
export function requireVisibleKeys({ lengths, attended = lengths }: RowLengths, mask: Mask): void {
  const { before } = reachOf(mask);
  if (!(before >= 0)) throw new RangeError("a query must see at least itself");
  lengths.forEach((length, row) => {
    if (length - 1 - before < attended[row]!) return;
    const keys = `the ${attended[row]!} tokens that attention sees`;
    throw new RangeError(`row ${row}: its last token is too far from ${keys}`);
  });
}
