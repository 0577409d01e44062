/** Flags that are not settings of this version, yet deserve better than "unknown flag". */

/** What comes after a flag; `choice`: perhaps one of on, off, auto, 0, 1. */
export type Follows = "nothing" | "value" | "choice";

/**
 * llama-server flags that change no result here, so that its command lines keep working: accepted, and named in
 * one notice. The value says what follows the flag.
 */
export const IGNORED_FLAGS: ReadonlyMap<string, Follows> = new Map<string, Follows>([
  ...spell("nothing", [
    ["-cb", "--cont-batching", "-nocb", "--no-cont-batching"],
    ["-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"],
    ["-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"],
    ["--webui", "--no-webui", "--ui", "--no-ui", "--slots", "--no-slots", "--props"],
    ["--warmup", "--no-warmup", "--perf", "--no-perf", "--jinja", "--no-jinja"],
    ["--mmap", "--no-mmap", "--mlock", "--repack", "-nr", "--no-repack", "--no-host"],
    ["--op-offload", "--no-op-offload", "--check-tensors", "--swa-full"],
    ["--cache-prompt", "--no-cache-prompt", "--context-shift", "--no-context-shift"],
    ["--log-prefix", "--no-log-prefix", "--log-timestamps", "--no-log-timestamps"],
  ]),
  ...spell("value", [
    ["-t", "--threads", "-tb", "--threads-batch", "--threads-http"],
    ["-np", "--parallel", "-ngl", "--gpu-layers", "--n-gpu-layers"],
    ["-dev", "-sm", "--split-mode", "-ts", "--tensor-split", "-mg", "--main-gpu"],
    ["-ctk", "--cache-type-k", "-ctv", "--cache-type-v", "-dt", "--defrag-thold"],
    ["--numa", "--prio", "--prio-batch", "--poll", "--poll-batch", "--cpu-strict"],
    ["-C", "--cpu-mask", "-Cr", "--cpu-range", "-lm", "--load-mode", "-fitt", "--fit-target"],
    [
      "-cram",
      "--cache-ram",
      "--cache-reuse",
      "--slot-save-path",
      "-sps",
      "--slot-prompt-similarity",
    ],
    ["-to", "--timeout", "-lv", "--verbosity", "--log-verbosity", "--tags"],
    [
      "-n",
      "--predict",
      "--n-predict",
      "--keep",
      "-s",
      "--seed",
      "--temp",
      "--top-k",
      "--top-p",
      "--min-p",
    ],
  ]),
  ...spell("choice", [["-fa", "--flash-attn", "-fit", "--fit", "--log-colors"]]),
]);

function spell(
  follows: Follows,
  lines: readonly (readonly string[])[],
): (readonly [string, Follows])[] {
  return lines.flat().map((spelling) => [spelling, follows] as const);
}

export interface UnavailableFlag {
  readonly spellings: readonly string[];
  readonly why: string;
  /** A switch; otherwise a value follows. */
  readonly isSwitch?: true;
  /** Values that only name what happens anyway, and are therefore fine. */
  readonly fine?: readonly string[];
}

const TEXT_ONLY = "this version reads text only, no images";
const NO_URLS =
  "this version downloads repositories of the Hugging Face hub only; give -m <owner>/<name>";
const NO_ADAPTERS =
  "this version runs a model as its files are; adapters and overrides are not supported";
const DEFAULT_PROFILE = "this version has the default behaviour only";

/** Flags whose effect would be missed: refused with the reason. */
export const UNAVAILABLE_FLAGS: readonly UnavailableFlag[] = [
  { spellings: ["--media-path", "--max-images", "--max-image-payload-size"], why: TEXT_ONLY },
  { spellings: ["--allow-private-media"], why: TEXT_ONLY, isSwitch: true },
  { spellings: ["-mm", "--mmproj", "-mmu", "--mmproj-url"], why: TEXT_ONLY },
  { spellings: ["--compat"], why: DEFAULT_PROFILE, fine: ["default"] },
  {
    spellings: ["--unknown-model"],
    why: "this version refuses names it does not serve",
    fine: ["reject"],
  },
  {
    spellings: ["--embeddings-route"],
    why: "/embeddings has its native form in this version",
    fine: ["native"],
  },
  { spellings: ["--empty-text"], why: "this version refuses empty texts", fine: ["reject"] },
  {
    spellings: ["-mu", "--model-url", "-dr", "--docker-repo"],
    why: NO_URLS,
  },
  {
    spellings: ["-hff", "--hf-file"],
    why: "name the file behind a colon, as in -m <owner>/<name>:model-q8_0.gguf",
  },
  { spellings: ["--lora", "--lora-scaled", "--control-vector", "--override-kv"], why: NO_ADAPTERS },
  {
    spellings: ["--rope-scaling", "--rope-scale", "--rope-freq-base", "--rope-freq-scale"],
    why: NO_ADAPTERS,
  },
  { spellings: ["--api-prefix"], why: "routes are served at the root; add a prefix in a proxy" },
];
