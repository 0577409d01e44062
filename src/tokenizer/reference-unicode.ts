/**
 * Classes of characters as the reference library has them. Its tables are older than JavaScript's: what was added or
 * changed since is taken out or put back here. Found by comparing every code point with tokenizers 0.23.3.
 */

/** Han characters that are split one by one. */
export const HAN =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gv;

/** Characters that are dropped from texts: controls and formats except tab and line ends, private ones, halves. */
export const CONTROL =
  /[[\0\ufffd\p{Cc}\p{Cf}\p{Co}\p{Cs}]--[\t\n\r\u0890\u0891\u08e2\u{110cd}\u{13430}-\u{1343f}]]/gv;

/** Nonspacing marks: accents, once a text is decomposed. */
export const NONSPACING_MARK =
  /[[\p{Mn}\u1734\u{1171e}]--[\u07fd\u0897-\u08e1\u09fe\u0afa-\u0aff\u0b55\u0c04-\u0c3c\u0d00\u0d3b-\u0d3c\u0d81\u0eba\u0ece\u180f-\u1886\u1abf-\u1aeb\u1df6-\u1dfb\ua82c\ua8c5\ua8ff\ua9bd\u{10d24}-\u{10f85}\u{11070}-\u{11074}\u{110c2}\u{111c9}\u{111cf}\u{1123e}-\u{11241}\u{1133b}\u{113bb}-\u{1145e}\u{1182f}-\u{1612f}\u{16f4f}\u{16fe4}\u{1cf00}-\u{1cf46}\u{1e000}-\u{1e6f5}\u{1e944}-\u{1e94a}]]/gv;

const PUNCTUATION_CLASS = String.raw`[[\p{P}\$\+<=>\^\x60\|~\u166d\u{111c9}]--[\u061d\u09fd-\u0a76\u0c77-\u0c84\u1b4e-\u1b4f\u1b7d-\u1b7f\u2e43-\u2e5d\u{10d6e}-\u{10f89}\u{113d4}-\u{1145d}\u{11660}-\u{116b9}\u{1183b}-\u{11fff}\u{12ff1}-\u{12ff2}\u{16d6d}-\u{16fe2}\u{1e5ff}-\u{1e95f}]]`;

/** Words without punctuation, and each punctuation character. */
export const WORDS_AND_PUNCTUATION = new RegExp(
  String.raw`(?:(?!${PUNCTUATION_CLASS})\P{White_Space})+|${PUNCTUATION_CLASS}`,
  "gv",
);
