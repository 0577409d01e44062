/** Deterministic texts for benchmarks: short queries and passages of mixed length, no two alike. */

const WORDS = (
  "river market engine winter garden signal theory copper island doctor window silver planet harbor memory " +
  "letter system forest bridge summer camera energy history kitchen journal market station village weather " +
  "protein battery village teacher painter railway captain council chapter library machine network pattern " +
  "quality research service science texture uniform variety account balance culture dialect economy farming " +
  "granite heating insight justice keeper lantern mineral notebook orchard package quarter rainfall student"
).split(" ");

/** Mulberry32: a small seeded generator, so that every run sees the same texts. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function sentence(next: () => number, words: number): string {
  return Array.from({ length: words }, () => WORDS[Math.floor(next() * WORDS.length)]).join(" ");
}

/** About 8 tokens each with the specials. */
export function shortQueries(count: number): string[] {
  const next = random(1);
  return Array.from({ length: count }, () => sentence(next, 4 + Math.floor(next() * 4)));
}

/** 20–200 words each. */
export function passages(count: number): string[] {
  const next = random(2);
  return Array.from({ length: count }, () => sentence(next, 20 + Math.floor(next() * 181)));
}
