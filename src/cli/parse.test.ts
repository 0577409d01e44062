import { describe, expect, test } from "bun:test";
import type { Environment } from "../native/environment.ts";
import { spellings } from "./flag-table.ts";
import { FLAGS } from "./flags.ts";
import { IGNORED_FLAGS, UNAVAILABLE_FLAGS } from "./foreign-flags.ts";
import { parseFlags } from "./parse.ts";
import { UsageError } from "./usage-error.ts";

function flags(line: string, env: Environment = {}) {
  return parseFlags(line === "" ? [] : line.split(" "), env).flags;
}

/** The message of the usage error, which is one line. */
function complaint(line: string, env: Environment = {}): string {
  try {
    flags(line, env);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    expect(error.message).not.toContain("\n");
    return error.message;
  }
  throw new Error(`"${line}" was accepted`);
}

describe("defaults", () => {
  test("nothing given: the documented defaults", () => {
    expect(flags("")).toMatchObject({
      host: "127.0.0.1",
      port: 8080,
      maxBodySize: 64 * 2 ** 20,
      truncate: "on",
      embeddingQueueDepth: 8,
      embeddingRequestTimeoutSecs: 120,
      device: "auto",
      metrics: false,
      rerankBatchSize: 0,
      rerankScores: "sigmoid",
      logFormat: "text",
      logLevel: "info",
    });
    expect(flags("").batchTokens).toBeUndefined();
    expect(flags("").model).toBeUndefined();
    expect(flags("").pooling).toBeUndefined();
  });
});

describe("spellings", () => {
  test.each(["-m x", "--model x", "--model=x", "-m=x", "-hf x", "--hf-repo x"])(
    "%s names the model",
    (line) => {
      expect(flags(line).model).toBe("x");
    },
  );

  test("a value may contain = and start with a dash", () => {
    expect(flags("--model=a=b").model).toBe("a=b");
    expect(flags("--embd-normalize -1").embdNormalize).toBe(-1);
  });

  test("-c and --ctx-size lower the length limit", () => {
    expect(flags("-c 128").embeddingMaxLength).toBe(128);
    expect(flags("--ctx-size 0").embeddingMaxLength).toBe(0);
  });

  test("-b and -ub: the larger of the two is the token budget", () => {
    expect(flags("-b 2048 -ub 512").batchTokens).toBe(2048);
    expect(flags("-ub 4096 -b 2048").batchTokens).toBe(4096);
    expect(flags("--batch-tokens auto").batchTokens).toBeUndefined();
    expect(flags("-b 0").batchTokens).toBeUndefined();
  });

  test("of a flag given twice the last one wins, lists grow", () => {
    expect(flags("--port 1 --port 2").port).toBe(2);
    expect(flags("--api-key a,b --api-key c").apiKey).toEqual(["a", "b", "c"]);
  });

  test("--truncate and --no-truncate: the last one wins", () => {
    expect(flags("--truncate on --no-truncate").truncate).toBe("error");
    expect(flags("--no-truncate --truncate on").truncate).toBe("on");
  });

  test.each(["--rerank", "--reranking"])("%s", (flag) => {
    expect(flags(flag).rerank).toBe(true);
    expect(flags("", { LLAMA_ARG_RERANKING: "1" }).rerank).toBe(true);
    expect(flags("").rerank).toBe(false);
  });

  test("a switch takes a value only behind =", () => {
    expect(flags("--metrics --port 1")).toMatchObject({ metrics: true, port: 1 });
    expect(flags("--metrics=off").metrics).toBe(false);
  });

  test("no spelling means two things", () => {
    const all = [
      ...FLAGS.flatMap((flag) => [...spellings(flag), ...Object.keys(flag.shortcuts ?? {})]),
      ...IGNORED_FLAGS.keys(),
      ...UNAVAILABLE_FLAGS.flatMap((flag) => flag.spellings),
    ];
    expect(all.filter((spelling, index) => all.indexOf(spelling) !== index)).toEqual([]);
  });
});

describe("environment", () => {
  test("MLXCEL_<FLAG> beats llama-server's variable, a flag beats both", () => {
    const env = { MLXCEL_PORT: "1", LLAMA_ARG_PORT: "2" };
    expect(flags("", { LLAMA_ARG_PORT: "2" }).port).toBe(2);
    expect(flags("", env).port).toBe(1);
    expect(flags("--port 3", env).port).toBe(3);
  });

  test("an empty variable counts as not set", () => {
    expect(flags("", { MLXCEL_PORT: "", LLAMA_ARG_PORT: "2" }).port).toBe(2);
  });

  test("LLAMA_ARG_BATCH and LLAMA_ARG_UBATCH: the larger one", () => {
    expect(flags("", { LLAMA_ARG_BATCH: "64", LLAMA_ARG_UBATCH: "512" }).batchTokens).toBe(512);
  });

  test.each(["1", "true", "on", "enabled", "yes"])("a switch is on for %s", (value) => {
    expect(flags("", { LLAMA_ARG_ENDPOINT_METRICS: value }).metrics).toBe(true);
  });

  test("keys come from LLAMA_API_KEY too", () => {
    expect(flags("", { LLAMA_API_KEY: "a, b" }).apiKey).toEqual(["a", "b"]);
  });

  test("a wrong variable is named itself", () => {
    expect(complaint("", { MLXCEL_PORT: "x" })).toBe(
      'MLXCEL_PORT takes a whole number from 0 to 65535, not "x"',
    );
    expect(complaint("", { MLXCEL_COMPAT: "omni" })).toContain("MLXCEL_COMPAT");
    expect(complaint("", { LLAMA_ARG_RERANKING: "maybe" })).toContain("LLAMA_ARG_RERANKING");
  });

  test("variables that are common elsewhere are left alone", () => {
    expect(() =>
      flags("", { HF_TOKEN: "x", MLXCEL_VERSION: "0.1.0", LLAMA_ARG_RERANKING: "0" }),
    ).not.toThrow();
  });

  test("every flag that serves has a variable of its own", () => {
    const names = FLAGS.flatMap((flag) => flag.env.filter((name) => name.startsWith("MLXCEL_")));
    expect(new Set(names).size).toBe(FLAGS.filter((flag) => !flag.noEnv).length);
  });
});

describe("sizes", () => {
  test.each([
    ["1048576", 1048576],
    ["64MB", 64e6],
    ["1GiB", 2 ** 30],
    ["1.5gib", 1.5 * 2 ** 30],
    ["10k", 10_000],
  ])("%s", (size, bytes) => {
    expect(flags(`--max-body-size ${size}`).maxBodySize).toBe(bytes);
  });

  test.each(["0", "-1", "64XB", "big", "1e3", "GiB"])("%s is refused", (size) => {
    expect(complaint(`--max-body-size ${size}`)).toStartWith(
      "--max-body-size takes a size such as",
    );
  });

  test("a memory limit from 1 MiB on", () => {
    expect(flags("--memory-limit 1MiB").memoryLimit).toBe(2 ** 20);
  });

  test("a cache limit of 0 is a limit", () => {
    expect(flags("--cache-limit 0").cacheLimit).toBe(0);
  });
});

describe("wrong command lines", () => {
  test.each([
    ["--prot 80", "--port"],
    ["--embeding-model x", "--embedding-model"],
    ["--max-body-sise 1", "--max-body-size"],
    ["--no-truncat", "--no-truncate"],
  ])("%s: the nearest flag is suggested", (line, suggestion) => {
    expect(complaint(line)).toContain(`did you mean ${suggestion}?`);
  });

  test("nothing is suggested for a word that is like no flag", () => {
    expect(complaint("--qqqqqqqqqqqqqqqqqqqq")).not.toContain("did you mean");
  });

  test.each([
    ["--port abc", '--port takes a whole number from 0 to 65535, not "abc"'],
    ["--port 65536", '--port takes a whole number from 0 to 65535, not "65536"'],
    ["--port 1.5", '--port takes a whole number from 0 to 65535, not "1.5"'],
    ["--truncate maybe", '--truncate takes on or error, not "maybe"'],
    ["--pooling none", '--pooling takes mean, cls, last, max or rank, not "none"'],
    ["--rerank-scores logits", '--rerank-scores takes sigmoid or raw, not "logits"'],
    ["--device tpu", '--device takes auto, gpu or cpu, not "tpu"'],
    ["-c -5", '-c takes a whole number, 0 or more, not "-5"'],
    ["--embd-normalize -2", '--embd-normalize takes a whole number, -1 or more, not "-2"'],
    ["-b 512 -ub x", '-ub takes auto or a whole number from 0 to 2147483647, not "x"'],
    [
      "--batch-tokens 2147483648",
      '--batch-tokens takes auto or a whole number from 0 to 2147483647, not "2147483648"',
    ],
    [
      "--memory-limit 10",
      '--memory-limit takes a size such as 1048576, 64MB or 1GiB, 1MiB or more (did you mean 10GB?), not "10"',
    ],
    [
      "--memory-limit 500k",
      '--memory-limit takes a size such as 1048576, 64MB or 1GiB, 1MiB or more, not "500k"',
    ],
    ["--metrics=maybe", '--metrics takes on or off, not "maybe"'],
  ])("%s: the flag as spelled and what it takes", (line, message) => {
    expect(complaint(line)).toBe(message);
  });

  test("a wrong key is never printed", () => {
    expect(complaint("--api-key ,")).toBe("--api-key takes one or more keys, separated by commas");
  });

  test("a value is missing at the end or before another flag", () => {
    expect(complaint("--port")).toBe("--port needs a value: --port PORT");
    expect(complaint("-m --port 80")).toBe("-m needs a value: -m NAME");
  });

  test("a spelling that implies its value takes none", () => {
    expect(complaint("--no-truncate=on")).toContain("--no-truncate takes no value");
  });

  test("a bare word is no flag", () => {
    expect(complaint("--metrics model")).toContain('"model"');
  });

  test.each(["*", "https://a.example", "http://localhost:3000,https://b.example"])(
    "origin %s",
    (origins) => {
      expect(flags(`--cors-origins ${origins}`).corsOrigins).toEqual(origins.split(","));
    },
  );

  test("an origin has a scheme and no path", () => {
    expect(complaint("--cors-origins a.example")).toContain("web origins such as");
    expect(complaint("--cors-origins https://a.example/x")).toContain("web origins such as");
  });
});

test("a revision is a name that git allows, and stays inside a directory", () => {
  expect(flags("--revision refs/pr/1").revision).toBe("refs/pr/1");
  expect(complaint("--revision ../x")).toContain("a branch, a tag or a commit");
});

test("the hub's own variables count, and a token is never shown", () => {
  const { flags: read } = parseFlags([], { HF_TOKEN: "hf_secret", HF_HUB_OFFLINE: "1" });
  expect(read).toMatchObject({ hfToken: "hf_secret", offline: true });
});

describe("llama-server's other flags", () => {
  test("those without effect are taken with their values and reported", () => {
    const { flags: parsed, ignored } = parseFlags(
      "-np 4 --no-webui -fa on -ngl=99 -fa --port 81".split(" "),
      {},
    );
    expect(parsed.port).toBe(81);
    expect(ignored).toEqual(["-np", "--no-webui", "-fa", "-ngl", "-fa"]);
  });

  test.each([
    "--compat llama-server",
    "--unknown-model serve",
    "--empty-text embed",
    "--model-url u",
    "--lora f",
    "--compat",
  ])("%s is refused", (line) => {
    expect(complaint(line)).toStartWith(`${line.split(" ")[0]}: `);
  });

  test.each([
    "--compat default",
    "--unknown-model=reject",
    "--embeddings-route native",
    "--empty-text reject",
  ])("%s only names what happens anyway", (line) => {
    expect(flags(`${line} --port 82`).port).toBe(82);
  });
});
