/** Texts that tokenizers disagree on: the same ones on every run. */

/** Each is a reason why some implementation gave other ids than the reference. */
const FRAGMENTS: readonly string[] = [
  // plain
  ...["the quick brown fox", "Hello", "I'LL", "don't", "we’re", "'s", "'S", "O'Neill's", "x=y+1;"],
  ...[
    "https://a.b/c?d=e&f#g",
    "user@example.com",
    '{"a": [1, 2]}',
    "for (i=0;i<n;++i){}",
    "C:\\dir",
  ],
  ...[
    "3.14159",
    "1,000,000",
    "20260131",
    "0x1F600",
    "1e-12",
    "５６７",
    "٣٤٥",
    "४५",
    "²³",
    "Ⅷ",
    "½",
    "①",
  ],
  // white space, also of other scripts, and what looks like it
  ...[
    " ",
    "  ",
    "   ",
    " ".repeat(31),
    " ".repeat(40),
    "\t",
    "\t\t",
    "\n",
    "\n\n",
    "\n\n\n\n",
    "\r\n",
    "\r",
  ],
  ...[
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u2009",
    "\u202f",
    "\u1680",
    "\u0085",
    "\u2028",
    "\u2029",
    "\v",
    "\f",
  ],
  ...["\u200b", "\u2060", "\ufeff", "\u180e", "\u00ad", "\u034f"],
  // controls and what is no character
  ...[
    "\0",
    "a\0b",
    "\u0001",
    "\u001b[0m",
    "\u007f",
    "\u009f",
    "\ufffd",
    "\ufffe",
    "\u{10ffff}",
    "\ue000",
    "\u{f0000}",
  ],
  ...["\ud800", "\udfff", "a\udc00b", "\udc00\ud800", "\ud83d", "\u0378", "\u{e0001}"],
  // letters that change when they are normalised or lower-cased
  ...[
    "é",
    "e\u0301",
    "ạ\u0308",
    "a\u0308\u0323",
    "\u0301",
    "Å",
    "\u212b",
    "ﬁ",
    "ﬀ",
    "ǆ",
    "ǅ",
    "ß",
    "ẞ",
    "İ",
    "ı",
    "I\u0307",
  ],
  ...[
    "ΑΣ",
    "ΌΔΟΣ ",
    "ς",
    "σ",
    "Ω",
    "\u2126",
    "µ",
    "K",
    "ſ",
    "ŉ",
    "ΐ",
    "\u0390",
    "Ⓐ",
    "𝔘𝔫𝔦",
    "ｆｕｌｌ",
    "ｶﾞ",
    "㎏",
    "㍿",
    "…",
    "⁇",
  ],
  ...[
    "\u0344",
    "\u0958",
    "क\u093c",
    "\u1e9b\u0323",
    "\ufb2c",
    "\u0f77",
    "\u2adc",
    "\u{1d15e}",
    "\u{2f800}",
    "\uf900",
  ],
  // scripts without spaces, with marks, from right to left
  ...[
    "中文字符",
    "日本語テキスト",
    "カタカナ",
    "漢\u{20000}字",
    "\u{2a6d6}\u{2b740}\u{30000}",
    "한국어",
    "\u1112\u1161\u11ab",
    "ㅎㅏㄴ",
  ],
  ...[
    "ภาษาไทย",
    "हिन्दी",
    "தமிழ்",
    "မြန်မာ",
    "ខ្មែរ",
    "العربية",
    "\u0627\u0654",
    "עִבְרִית",
    "Привет",
    "ё",
    "е\u0308",
    "ქართული",
    "አማርኛ",
  ],
  ...["\u202eabc\u202c", "\u200fא\u200e", "\u2066x\u2069"],
  // emoji
  ...["😀", "👍🏽", "👩‍👩‍👧", "🏳️‍🌈", "🇫🇷🇩🇪🇫", "❤️", "❤", "1️⃣", "\u200d", "\ufe0f", "🧑🏻‍🚀"],
  // special tokens, nearly special tokens, and how vocabularies write things
  ...[
    "<s>",
    "</s>",
    "<pad>",
    "<unk>",
    "<mask>",
    " <mask>",
    "\n <mask> ",
    "<mask><mask>",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    " [MASK] ",
  ],
  ...[
    "[UNK]",
    "[PAD]",
    "[mask]",
    "[MASK",
    "MASK]",
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<tool_call>",
  ],
  ...[
    "<|begin_of_text|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<unused5>",
    "<extra_id_0>",
    "[Q]",
    "[D]",
  ],
  ...[
    "▁",
    "▁▁",
    "▁the",
    "Ġ",
    "Ġthe",
    "Ċ",
    "##ing",
    "##",
    "<0x0A>",
    "<0xFF>",
    "[unused1]",
    "[PAD]x",
  ],
  // tokens that one test adds
  ...[
    "<L>",
    " \t<L> ",
    "<R>",
    "<R> \n ",
    "\u00a0<LR>\u3000",
    "<LR><LR>",
    "x <LR> <L> <R> y",
    "qat",
    "qats",
    "a qat!",
  ],
  ...["qat_", "qat\u0301", "éclair", "e\u0301clair", "ÉCLAIR", "\u0085<LR>\ufeff"],
  // long words
  ...[
    "a".repeat(99),
    "a".repeat(100),
    "a".repeat(101),
    "é".repeat(101),
    "e\u0301".repeat(80),
    "ab".repeat(300),
    "-".repeat(200),
    "中".repeat(120),
  ],
];

/** Of these blocks any code point, assigned or not. */
const BLOCKS: readonly (readonly [first: number, last: number])[] = [
  [0x00, 0xff],
  [0x100, 0x24f],
  [0x300, 0x36f],
  [0x370, 0x52f],
  [0x590, 0x6ff],
  [0x900, 0xdff],
  [0xe00, 0xfff],
  [0x1000, 0x17ff],
  [0x1e00, 0x1fff],
  [0x2000, 0x2bff],
  [0x3000, 0x33ff],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7af],
  [0xd800, 0xdfff],
  [0xf900, 0xffff],
  [0x10000, 0x1ffff],
  [0x20000, 0x323af],
  [0xe0000, 0xe01ef],
];

/** `count` texts, of each fragment alone first. */
export function nastyTexts(count: number): string[] {
  const random = randomNumbers(20_260_131);
  const pick = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const point = () => {
    const [first, last] = pick(BLOCKS);
    return String.fromCodePoint(first + random(last - first + 1));
  };
  const mixed = () =>
    Array.from({ length: 1 + random(12) }, () => {
      const kind = random(10);
      if (kind < 6) return pick(FRAGMENTS);
      if (kind < 8) return " ";
      return Array.from({ length: 1 + random(6) }, point).join("");
    }).join("");
  return Array.from({ length: count }, (_, i) => (i === 0 ? "" : (FRAGMENTS[i - 1] ?? mixed())));
}

/** White space that some vocabularies have runs of, one that most have not, and what stands for a space. */
const WHITE_SPACE = [" ", "\t", "\n", "\u00a0", "▁"];

/** Every text of up to `longest` characters of white space, the shortest first. */
export function whiteSpaceTexts(longest: number): string[] {
  let last = [""];
  return Array.from({ length: longest }, () => {
    last = last.flatMap((text) => WHITE_SPACE.map((character) => text + character));
    return last;
  }).flat();
}

/** Letters without a space, the same ones each time. */
export function letters(count: number): string {
  const random = randomNumbers(count);
  return Array.from({ length: count }, () => String.fromCharCode(97 + random(26))).join("");
}

/** Whole numbers below a limit, from a linear congruential generator (Numerical Recipes). */
function randomNumbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}
