import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";

describe("a tensor", () => {
  test("used after it was freed throws", () => {
    const a = mx.ones([2]);
    a.free();
    expect(a.freed).toBe(true);
    for (const use of [
      () => a.shape,
      () => a.dtype,
      () => a.toFloat32(),
      () => mx.add(a, a),
      () => mx.evaluate(a),
      () => mx.concatenate([a]),
      () => mx.keep(a),
    ]) {
      expect(use).toThrow(new mx.MlxError("tensor", "used after it was freed"));
    }
  });

  test("may be freed again", () => {
    const a = mx.ones([2]);
    a.free();
    expect(() => a.free()).not.toThrow();
  });

  test("outside of a scope belongs to its maker", () => {
    const a = mx.ones([2]);
    mx.scope(() => mx.add(a, a));
    expect(a.freed).toBe(false);
    a.free();
  });
});

describe("a scope", () => {
  test("frees what its result does not hold", () => {
    let inner: mx.Tensor | undefined;
    const outer = mx.scope(() => {
      inner = mx.ones([2]);
      return mx.add(inner, inner);
    });
    expect(inner?.freed).toBe(true);
    expect(outer.toFloat32()).toEqual(new Float32Array([2, 2]));
    outer.free();
  });

  test("finds tensors in arrays, plain objects, maps and sets", () => {
    const result = mx.scope(() => {
      const nested = { list: [mx.ones([1])], map: new Map([["w", mx.ones([1])]]) };
      return { nested, set: new Set([mx.ones([1])]), count: 3, ids: new Int32Array(4), none: null };
    });
    const held = [result.nested.list[0]!, result.nested.map.get("w")!, ...result.set];
    expect(held.map((tensor) => tensor.freed)).toEqual([false, false, false]);
    for (const tensor of held) tensor.free();
  });

  test("frees everything when its body throws", () => {
    let inside: mx.Tensor | undefined;
    expect(() =>
      mx.scope(() => {
        inside = mx.ones([2]);
        throw new RangeError("mine");
      }),
    ).toThrow(new RangeError("mine"));
    expect(inside?.freed).toBe(true);
  });

  test("hands survivors to the scope around it", () => {
    let survivor: mx.Tensor | undefined;
    let temporary: mx.Tensor | undefined;
    mx.scope(() => {
      survivor = mx.scope(() => {
        temporary = mx.ones([2]);
        return mx.exp(temporary);
      });
      expect([temporary?.freed, survivor.freed]).toEqual([true, false]);
    });
    expect(survivor?.freed).toBe(true);
  });

  test("inside another one that throws leaves the outer one in order", () => {
    let before: mx.Tensor | undefined;
    let after: mx.Tensor | undefined;
    mx.scope(() => {
      before = mx.ones([2]);
      expect(() =>
        mx.scope(() => {
          throw new Error("inner");
        }),
      ).toThrow("inner");
      after = mx.ones([2]);
      expect(before.freed).toBe(false);
    });
    expect([before?.freed, after?.freed]).toEqual([true, true]);
  });

  test("passes what it returns of the outer scope through without freeing it twice", () => {
    mx.scope(() => {
      const a = mx.ones([2]);
      expect(mx.scope(() => a)).toBe(a);
      expect(a.freed).toBe(false);
    });
  });

  test("leaves kept tensors to their owner", () => {
    const weights = mx.scope(() => {
      const w = mx.ones([2]);
      mx.keep({ layer: [w] });
      return { later: () => w };
    });
    expect(weights.later().freed).toBe(false);
    weights.later().free();
    expect(weights.later().freed).toBe(true);
  });

  test("refuses an asynchronous body", () => {
    let made: mx.Tensor | undefined;
    expect(() =>
      mx.scope(async () => {
        made = mx.ones([2]);
      }),
    ).toThrow("the body must be synchronous");
    expect(made?.freed).toBe(true);
  });
});
