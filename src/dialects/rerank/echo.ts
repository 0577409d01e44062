import type { EchoedItems } from "../dialect.ts";

/** The items as they stood in the request, all keys included, in the form that rendering splices in. */
export function echoedItems(items: readonly unknown[]): EchoedItems {
  const encoder = new TextEncoder();
  const parts = items.map((item) => encoder.encode(JSON.stringify(item)));
  const offsets = new Uint32Array(items.length + 1);
  parts.forEach((part, i) => {
    offsets[i + 1] = offsets[i]! + part.byteLength;
  });
  const bytes = new Uint8Array(offsets[items.length]!);
  parts.forEach((part, i) => bytes.set(part, offsets[i]!));
  return { bytes, offsets };
}

/** The JSON text of one item. */
export function echoedItem({ bytes, offsets }: EchoedItems, item: number): Uint8Array {
  return bytes.subarray(offsets[item], offsets[item + 1]);
}
