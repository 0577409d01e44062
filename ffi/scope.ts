import { MlxError } from "./error.ts";
import { disown, enter, leave, Tensor } from "./tensor.ts";

/**
 * Runs `body` and frees every tensor made inside that its result does not hold, also when it throws. Tensors are
 * found in the result when they are the result itself or lie in arrays, maps, sets and plain objects. Survivors
 * belong to the enclosing scope, or to the caller where there is none. The body must be synchronous.
 */
export function scope<T>(body: () => T): T {
  const outer = enter();
  let survivors: ReadonlySet<Tensor> | undefined;
  try {
    const result = body();
    if (result instanceof Promise) {
      throw new MlxError(
        "scope",
        "the body must be synchronous: its tensors are freed when it returns",
      );
    }
    survivors = tensorsIn(result);
    return result;
  } finally {
    leave(outer, survivors);
  }
}

/** Takes the tensors in `value` out of all scopes: from now on their owner frees them. For weights. */
export function keep<T>(value: T): T {
  for (const tensor of tensorsIn(value)) disown(tensor);
  return value;
}

function tensorsIn(value: unknown): ReadonlySet<Tensor> {
  const found = new Set<Tensor>();
  const seen = new Set<object>();
  const visit = (item: unknown): void => {
    if (typeof item !== "object" || item === null || ArrayBuffer.isView(item) || seen.has(item))
      return;
    if (item instanceof Tensor) {
      found.add(item);
      return;
    }
    seen.add(item);
    if (Array.isArray(item) || item instanceof Set) item.forEach(visit);
    else if (item instanceof Map) item.forEach(visit);
    else if (isPlain(item)) Object.values(item).forEach(visit);
  };
  visit(value);
  return found;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
