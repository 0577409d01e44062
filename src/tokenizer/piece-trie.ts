/** Pieces by their UTF-16 units: one map from (node, unit) to node. */
export class PieceTrie {
  /** UTF-16 units of the longest piece. */
  longest = 0;
  readonly #children = new Map<number, number>();
  readonly #ids: number[] = [-1];
  readonly #pieces = new Set<string>();

  add(piece: string, id: number): void {
    let node = 0;
    for (let i = 0; i < piece.length; i++) {
      const key = node * 0x10000 + piece.charCodeAt(i);
      let child = this.#children.get(key);
      if (child === undefined) {
        child = this.#ids.push(-1) - 1;
        this.#children.set(key, child);
      }
      node = child;
    }
    this.#ids[node] = id;
    this.#pieces.add(piece);
    this.longest = Math.max(this.longest, piece.length);
  }

  has(piece: string): boolean {
    return this.#pieces.has(piece);
  }

  /** Calls `found` for every piece at `start`, the shortest first. */
  match(text: string, start: number, found: (end: number, id: number) => void): void {
    let node = 0;
    for (let i = start; i < text.length; i++) {
      const child = this.#children.get(node * 0x10000 + text.charCodeAt(i));
      if (child === undefined) return;
      node = child;
      const id = this.#ids[node] ?? -1;
      if (id >= 0) found(i + 1, id);
    }
  }
}
