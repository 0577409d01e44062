import { joinParts, partAt, type ByteParts } from "./byte-parts.ts";
import type { EmbedItem } from "./job.ts";

/**
 * The items of a big request, each as UTF-8 text or little-endian i32 token ids, in transferable buffers: a request
 * parsed off the HTTP thread reaches the model worker without its texts being copied or decoded on the way.
 */
interface PackedItems extends ByteParts {
  readonly count: number;
  /** [count] 1 where the item is token ids. */
  readonly isIds: Uint8Array<ArrayBuffer>;
}

export type Items = readonly EmbedItem[] | PackedItems;

function isPacked(items: Items): items is PackedItems {
  return "offsets" in items;
}

export function itemCount(items: Items): number {
  return isPacked(items) ? items.count : items.length;
}

/** Stray halves of surrogate pairs become U+FFFD here, as in any UTF-8 encoding. */
export function packItems(items: readonly EmbedItem[]): PackedItems {
  const encoder = new TextEncoder();
  const parts = items.map((item) =>
    "text" in item
      ? encoder.encode(item.text)
      : new Uint8Array(item.ids.buffer, item.ids.byteOffset, item.ids.byteLength),
  );
  const isIds = Uint8Array.from(items, (item) => ("ids" in item ? 1 : 0));
  return { count: items.length, ...joinParts(parts), isIds };
}

/** The buffers to transfer with a packed list. */
export function packedBuffers(items: PackedItems): ArrayBuffer[] {
  return [items.bytes.buffer, items.offsets.buffer, items.isIds.buffer];
}

export function unpackItems(items: Items): readonly EmbedItem[] {
  if (!isPacked(items)) return items;
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return Array.from({ length: items.count }, (_, i): EmbedItem => {
    const part = partAt(items, i);
    // slice: an i32 view needs 4-byte alignment, which a text before it may have broken
    return items.isIds[i]
      ? { ids: new Int32Array(part.slice().buffer) }
      : { text: decoder.decode(part) };
  });
}

/** The items of a job whose items are all texts. */
export function textsOf(items: Items): readonly string[] {
  return unpackItems(items).map((item) => {
    if ("text" in item) return item.text;
    throw new Error("token ids where a text belongs");
  });
}
