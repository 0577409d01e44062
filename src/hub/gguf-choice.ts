/** Which of a repository's GGUF files is meant. */
import { basename } from "node:path";

/** In the order in which they are taken where none is named: what can be loaded as it is, the smallest loss first. */
const PREFERRED = ["Q8_0", "F16", "BF16", "F32", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_1", "Q4_0"];

/** Not models of their own: image projectors, calibration matrices, draft heads. */
const COMPANION = /mmproj|imatrix|(^|[-._])(mtp|eagle3|dflash|dspark)-/i;

const SPLIT = /-\d{5}-of-\d{5}\.gguf$/i;

/** A quantisation, as names of files and folders write it, and the form itself. */
const QUANTISATION =
  /(^|[-._])(ud-)?(i?q\d[a-z\d_]*|tq\d_\d|b?f16|f32|fp16|fp32|mxfp4[a-z_]*|gguf)(?=[-._]|$)/gi;

/** What a path of a GGUF file says of its model: the same for all that differ in nothing but the quantisation. */
export function modelOfGguf(path: string): string {
  const parts = path
    .replace(SPLIT, ".gguf")
    .split("/")
    .map((part) => part.replace(QUANTISATION, "").toLowerCase());
  return [...new Set(parts.filter((part) => part !== ""))].join("/");
}

/** The model files among paths of a repository. */
export function ggufModels(paths: readonly string[]): string[] {
  return paths.filter((path) => /\.gguf$/i.test(path) && !COMPANION.test(basename(path)));
}

/**
 * The path that `wanted` names: a file, or a quantisation in any case such as `q8_0`; where it is undefined, what
 * PREFERRED says.
 *
 * @param source what holds the files, for messages
 * @throws Error listing the files where none or several fit
 */
export function chooseGguf(
  paths: readonly string[],
  wanted: string | undefined,
  source: string,
): string {
  const models = ggufModels(paths);
  const whole = models.filter((path) => !SPLIT.test(path));
  const listed = models.length === 0 ? "it has no GGUF file" : `it has ${models.join(", ")}`;
  if (wanted === undefined) {
    const preferred = PREFERRED.map((quantisation) => matching(whole, quantisation));
    const best = preferred.find((matches) => matches.length > 0)?.[0] ?? whole[0];
    if (best !== undefined) return best;
    throw new Error(`${source} has its GGUF files in parts, which are not read; ${listed}`);
  }
  const [found, ...others] = matching(whole, wanted);
  if (found === undefined) {
    const inParts = matching(models, wanted).length > 0;
    const why = inParts ? "is in parts, which are not read" : "is not there";
    throw new Error(`${source}: ${wanted} ${why}; ${listed}`);
  }
  if (others.length === 0) return found;
  throw new Error(
    `${source}: ${wanted} could be ${[found, ...others].join(" or ")}; name the file behind the colon`,
  );
}

/** The paths that are called so, or whose quantisation it is. */
export function matching(paths: readonly string[], wanted: string): string[] {
  const lower = wanted.toLowerCase();
  if (lower.endsWith(".gguf")) {
    const whole = paths.filter((path) => path.toLowerCase() === lower);
    return whole.length > 0
      ? whole
      : paths.filter((path) => basename(path).toLowerCase() === lower);
  }
  const quantisation = lower.replace(/[^\w]/g, "\\$&");
  const pattern = new RegExp(`(^|[-._])${quantisation}[-.]`);
  return paths.filter((path) => pattern.test(basename(path).toLowerCase()));
}
