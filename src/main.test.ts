/** Runs the real process: exit codes and the one line that goes with them. */
import { describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMMANDS } from "./cli/commands.ts";
import { fixture } from "../test/fixtures/fixtures.ts";

const MAIN = join(import.meta.dir, "main.ts");

async function mlxcel(args: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"], HOME: join(tmpdir(), "mlxcel-no-home"), ...env },
  });
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { stdout, stderr, code };
}

describe("exit code 0, text on stdout", () => {
  const commandLines = ["--help", "help", "serve -h", "--bogus --help"];
  test.each(commandLines)("%s", async (line) => {
    const { stdout, stderr, code } = await mlxcel(line.split(" "));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("--embedding-model NAME");
    expect(stdout).not.toContain("\u001b");
  });

  test.each([
    ["embed --help", "--npy"],
    ["rerank -h", "--top-n N"],
    ["embed --bogus --help", "-t, --text TEXT..."],
    ["help embed", "--npy"],
    ["help bench", "--rounds N"],
    ["pull --help", "--revision REVISION"],
    ["help rm", "-y, --yes"],
    ["ls -h", "mlxcel list"],
    ["show -h", "mlxcel show NAME"],
  ])("%s: the flags of that command", async (line, flag) => {
    const { stdout, stderr, code } = await mlxcel(line.split(" "));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(flag);
    expect(stdout).not.toContain("--port");
  });

  const others = Object.keys(COMMANDS).filter((name) => name !== "serve");
  test.each(others)("help %s and %s --help: one text, that command's own", async (name) => {
    const [asked, flagged] = await Promise.all([mlxcel(["help", name]), mlxcel([name, "--help"])]);
    expect(asked).toEqual({
      stdout: expect.stringMatching(new RegExp(`^mlxcel ${name} `)),
      stderr: "",
      code: 0,
    });
    expect(flagged).toEqual(asked);
  });

  test("licenses: ours, when it runs from its sources", async () => {
    const { stdout, code } = await mlxcel(["licenses"]);
    expect({ stdout, code }).toEqual({
      stdout: expect.stringContaining("Apache License"),
      code: 0,
    });
  });

  test.each(["--version", "version"])("%s", async (argument) => {
    const { stdout, code } = await mlxcel([argument]);
    expect({ stdout, code }).toEqual({
      stdout: expect.stringMatching(
        /^mlxcel \d+\.\d+\.\d+ \(MLX \d+\.\d+\.\d+, mlx-c 0\.7\.0, Bun \d+\.\d+\.\d+\)\n$/,
      ),
      code: 0,
    });
  });
});

describe("exit code 2: a wrong command line", () => {
  test.each([
    [
      ["--prot", "80"],
      "mlxcel: unknown flag --prot; did you mean --port? mlxcel --help lists them all",
    ],
    [["serve", "--port", "x"], 'mlxcel: --port takes a whole number from 0 to 65535, not "x"'],
    [["--mmproj", "x"], "mlxcel: --mmproj: this version reads text only, no images"],
    [
      ["embed", "--txt", "a"],
      "mlxcel: unknown flag --txt; did you mean --text? mlxcel embed --help lists them all",
    ],
    [["embed", "hello"], 'mlxcel: unexpected argument "hello"; texts come behind -t'],
    [["embed"], "mlxcel: nothing to embed: give -t TEXT or --file FILE"],
    [
      ["embed", "-t", "a", "--json", "--npy"],
      "mlxcel: --json and --npy are two forms of the answer; choose one",
    ],
    [["rerank", "-d", "a"], "mlxcel: nothing to rank by: give -q QUERY"],
    ...[["embed", "-t", "a"], ["rerank", "-q", "a", "-d", "b"], ["bench"]].flatMap(
      (command) =>
        [
          // before a model is looked for: here is none
          [
            [...command, "-o", tmpdir()],
            `mlxcel: --output ${tmpdir()}: is a directory; name a file`,
          ],
          [
            [...command, "-o", "no/such/x"],
            "mlxcel: --output no/such/x: there is no directory no/such; make it first",
          ],
        ] satisfies [string[], string][],
    ),
    [["rerank", "-q", "a"], "mlxcel: nothing to rank: give -d DOC or --file FILE"],
    [
      ["rerank", "-q", "a", "-d", "b", "-n", "0"],
      'mlxcel: -n takes a whole number, 1 or more, not "0"',
    ],
    [
      ["sevre"],
      "mlxcel: unknown command sevre; did you mean serve? mlxcel --help lists the commands",
    ],
    [
      ["help", "pul"],
      "mlxcel: unknown command pul; did you mean pull? mlxcel --help lists the commands",
    ],
    [["help", "pull", "rm"], "mlxcel: help takes the name of one command"],
    [["version", "now"], 'mlxcel: unexpected argument "now"; version takes none'],
    [["pull"], "mlxcel: nothing to pull: give the name of a repository"],
    [["pull", "--json", "a/b"], "mlxcel: unknown flag --json; mlxcel pull --help lists them all"],
    [["rm"], "mlxcel: nothing to delete: give the name of a model"],
    [
      ["list", "a/b"],
      'mlxcel: unexpected argument "a/b"; list shows all models; mlxcel show NAME shows one',
    ],
    [
      ["show", "a/b", "c/d"],
      "mlxcel: show takes the name of one model; mlxcel list shows what is here",
    ],
    [["doctor", "--xml"], "mlxcel: unknown flag --xml; mlxcel doctor --help lists them all"],
  ])("%j", async (args, line) => {
    expect(await mlxcel(args)).toEqual({ stdout: "", stderr: `${line}\n`, code: 2 });
  });

  test("a wrong variable", async () => {
    const { stderr, code } = await mlxcel([], { LLAMA_ARG_PORT: "x" });
    expect({ stderr, code }).toEqual({
      stderr: 'mlxcel: LLAMA_ARG_PORT takes a whole number from 0 to 65535, not "x"\n',
      code: 2,
    });
  });
});

test.each([
  ["MLXCEL_KERNELS", "foo", "off, avx512, avx2 or baseline"],
  ["MLXCEL_PROFILE", "yes", "1, true, 0 or false"],
  ["MLXCEL_DEBUG", "2", "1, true, 0 or false"],
])("%s=%s is refused with what it takes: exit code 2", async (name, value, accepted) => {
  expect(await mlxcel(["embed", "-t", "a"], { [name]: value })).toEqual({
    stdout: "",
    stderr: `mlxcel: ${name} takes ${accepted}, not "${value}"\n`,
    code: 2,
  });
});

describe("exit code 1: something is missing", () => {
  test("a model directory", async () => {
    expect(await mlxcel(["-m", "./no-such-model"])).toEqual({
      stdout: "",
      stderr: "mlxcel: model ./no-such-model: no such directory or file\n",
      code: 1,
    });
  });

  test("the default model, on a machine without any", async () => {
    const offline = await mlxcel(["--offline"]);
    expect(offline.code).toBe(1);
    expect(offline.stderr).toMatch(
      /^mlxcel: model sentence-transformers\/all-MiniLM-L6-v2 not found: .* leave --offline out to download it\n$/,
    );
    const unreachable = await mlxcel([], { HF_ENDPOINT: "http://127.0.0.1:1" });
    expect(unreachable.code).toBe(1);
    expect(unreachable.stderr).toMatch(
      /^mlxcel: model sentence-transformers\S+ is not on this machine, .*no connection to 127.0.0.1:1 .*\n$/,
    );
  });

  const twoLabels = fixture("classifier-bert-2-labels");
  test.each([
    { args: ["-m", twoLabels] },
    { args: ["--reranker-model", twoLabels] },
    { args: ["--embedding-model", twoLabels] },
    { args: ["-m", fixture("bert-mean"), "--reranker-model", twoLabels] },
  ])("a classifier of two labels, alone or beside an embedder: $args", async ({ args }) => {
    const { stdout, stderr, code } = await mlxcel([...args, "--port", "0"]);
    expect({ stdout, code }).toEqual({ stdout: "", code: 1 });
    expect(stderr).toMatch(/^mlxcel: .* is a classifier of 2 labels\b.*\n$/);
  });

  test("the stack is shown under MLXCEL_DEBUG=1 only", async () => {
    const { stderr } = await mlxcel(["-m", "./no-such-model"], { MLXCEL_DEBUG: "1" });
    expect(stderr).toContain("at ");
    expect(stderr.trimEnd().split("\n").length).toBeGreaterThan(1);
  });
});
