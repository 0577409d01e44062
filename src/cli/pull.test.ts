/** The commands around the store as processes, with a hub on this machine. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fixture, temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { expected } from "../../test/checkpoints.ts";
import { run, startServer, until } from "../../test/server.ts";
import { partialDirectory } from "../hub/store.ts";
import { bert } from "../hub/testing/downloads.ts";
import { commitOf, filesOf, HubServer, type SeenRequest } from "../hub/testing/hub-server.ts";
import { timeAgo } from "./list.ts";

const NAME = "owner/bert";
const WEIGHTS = "model.safetensors";
const weightBytes = statSync(join(fixture("bert-mean"), WEIGHTS)).size;
const store = temporaryDirectory("pull");
const model = join(store, NAME);
let hub: HubServer;

beforeAll(async () => {
  hub = await HubServer.start({ [NAME]: bert });
});
afterAll(() => hub[Symbol.asyncDispose]());
beforeEach(() => {
  hub.requests.length = 0;
  hub.fault = () => undefined;
});
afterEach(() => {
  for (const name of readdirSync(store)) rmSync(join(store, name), { recursive: true });
});

const environment = (more: Record<string, string> = {}) => ({
  HF_ENDPOINT: hub.url,
  HF_HUB_OFFLINE: "0",
  HOME: store,
  MLXCEL_MODELS_DIR: store,
  ...more,
});
const mlxcel = (line: string, more?: Record<string, string>) =>
  run(line.split(" "), environment(more));

const ofWeights = ({ server, path }: SeenRequest) => server === "cdn" && path === WEIGHTS;

/** A download that takes its time, and how much of the weights has been sent. */
function slowly(): void {
  hub.fault = (request) =>
    ofWeights(request) ? { slow: { pieceBytes: 20_000, pauseMs: 25 } } : undefined;
}

/** `mlxcel pull` of which a part has arrived. */
async function begunPull() {
  slowly();
  const child = Bun.spawn([process.execPath, "src/main.ts", "pull", NAME], {
    cwd: join(import.meta.dir, "../.."),
    env: { ...process.env, ...environment() },
    stdout: "pipe",
    stderr: "pipe",
  });
  await until(() => partBytes() > 60_000, "nothing arrived");
  return child;
}

function partBytes(): number {
  const partial = partialDirectory(store, NAME);
  if (!existsSync(partial)) return 0;
  const part = readdirSync(partial).filter((name) => name.endsWith(".part"));
  return Math.max(0, ...part.map((name) => sizeOf(join(partial, name))));
}

/** 0 of a file that has just got its final name. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

describe("pull", () => {
  test("prints where the model lies, tells of the download in plain lines, and embed answers", async () => {
    const { exitCode, stdout, stderr } = await mlxcel(`pull ${NAME}`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `${model}\n` });
    expect(stderr).toMatch(
      /^mlxcel: downloading owner\/bert from 127.0.0.1:\d+ \(\d+ files, \d+.\d kB\)\nmlxcel: owner\/bert is complete: .*\n$/,
    );
    const vectors = await mlxcel(`embed -m ${NAME} --offline --json -t hello`);
    expect(JSON.parse(vectors.stdout)).toMatchObject({ model: "bert", data: [{ index: 0 }] });
    const direct = await run(["embed", "-m", fixture("bert-mean"), "--json", "-t", "hello"]);
    expect(JSON.parse(vectors.stdout).data).toEqual(JSON.parse(direct.stdout).data);
  });

  test("killed in the middle, it goes on where it stopped: bytes that are here are not asked for", async () => {
    const killed = await begunPull();
    killed.kill("SIGKILL");
    await killed.exited;
    expect(existsSync(model)).toBe(false);
    const here = partBytes();
    const before = hub.requests.length;
    hub.fault = () => undefined;

    const { exitCode, stderr } = await mlxcel(`pull ${NAME}`);
    expect(exitCode).toBe(0);
    expect(stderr).toContain("of it here already");
    const again = hub.requests.slice(before);
    const weightRequests = again.filter(ofWeights);
    expect(weightRequests.map(({ headers }) => headers.range)).toEqual([`bytes=${here}-`]);
    expect(again.filter(({ path }) => path === "modules.json")).toEqual([]);
    expect(readFileSync(join(model, WEIGHTS))).toEqual(
      readFileSync(join(fixture("bert-mean"), WEIGHTS)),
    );
  });

  test("ctrl-C: exit code 130 and a line that says how to go on", async () => {
    const child = await begunPull();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(await child.stderr.text()).toEndWith(
      "mlxcel: stopped; run the same command again, and it goes on from here\n",
    );
    expect(partBytes()).toBeGreaterThan(0);
  });

  test("a second process waits and uses what the first has brought; a second pull only compares", async () => {
    const first = await begunPull();
    const second = mlxcel(`embed -m ${NAME} -t hello`);
    const third = await begunPull();
    expect(await first.exited).toBe(0);
    const { exitCode, stderr } = await second;
    expect(exitCode).toBe(0);
    expect(stderr).toContain("another process is downloading owner/bert; waiting for it");
    expect(await third.exited).toBe(0);
    expect(await third.stderr.text()).toContain("owner/bert is up to date");
    expect(hub.rangesOf(WEIGHTS)).toEqual([0]);
  });

  test("a lock of a dead process is none", async () => {
    const dead = await begunPull();
    dead.kill("SIGKILL");
    await dead.exited;
    hub.fault = () => undefined;
    const { exitCode, stderr } = await mlxcel(`pull ${NAME}`);
    expect(exitCode).toBe(0);
    expect(stderr).not.toContain("waiting");
  });

  test("what cannot be had: exit code 1 and one line", async () => {
    const absent = await mlxcel("pull owner/absent");
    expect(absent).toMatchObject({ exitCode: 1, stdout: "" });
    expect(absent.stderr).toMatch(/^mlxcel: model owner\/absent was not found at .*\n$/);
    const offline = await mlxcel(`pull ${NAME} --offline`);
    expect(offline.exitCode).toBe(1);
    expect(offline.stderr).toContain("leave --offline out to download it");
    const forbidden = await mlxcel(`pull ${NAME}`, { HF_HUB_OFFLINE: "1" });
    expect(forbidden.stderr).toContain("has it; unset HF_HUB_OFFLINE to download it");
    expect((await mlxcel("pull minilm")).stderr).toContain("a repository is named <owner>/<name>");
  });

  test("a proxy is used, and not for hosts in NO_PROXY", async () => {
    const asked: string[] = [];
    await using proxy = Bun.serve({
      port: 0,
      fetch: ({ url }) => {
        asked.push(new URL(url).host);
        return new Response(null, { status: 404 });
      },
    });
    const proxied = { HF_ENDPOINT: "http://hub.example", HTTP_PROXY: proxy.url.href };
    expect((await mlxcel(`pull ${NAME}`, proxied)).stderr).toContain("not found at hub.example");
    expect(asked).toEqual(["hub.example"]);
    const direct = { HTTP_PROXY: proxy.url.href, NO_PROXY: "127.0.0.1" };
    expect((await mlxcel(`pull ${NAME}`, direct)).exitCode).toBe(0);
    expect(asked).toHaveLength(1);
  });
});

describe("names of other kinds of models, downloaded and run", () => {
  test("a GGUF file of a repository, by its quantisation", async () => {
    const quantised = join(fixture("bert-mean-gguf-q8_0"), "model.gguf");
    hub.repositories["owner/gguf"] = {
      files: { "bert-Q8_0.gguf": readFileSync(quantised), "bert-F16.gguf": "GGUF" },
    };
    const named = await mlxcel("embed -m owner/gguf:q8_0 --json -t hello");
    const direct = await mlxcel(`embed -m ${quantised} --json -t hello`);
    expect(named.stderr).not.toContain("F16");
    expect(JSON.parse(named.stdout).data).toEqual(JSON.parse(direct.stdout).data);
    expect((await mlxcel("list")).stdout).toMatch(/^owner\/gguf .* embedding {2}bert /m);
    expect((await mlxcel("show owner/gguf:Q8_0")).stdout).toMatch(/^weights +Q8_0, /m);
  });

  test("an adapter with its base", async () => {
    const config = JSON.parse(
      readFileSync(join(fixture("bert-lora-dora"), "adapter_config.json"), "utf8"),
    );
    const files = filesOf(fixture("bert-lora-dora"));
    hub.repositories["owner/lora"] = {
      files: {
        ...files,
        "adapter_config.json": JSON.stringify({ ...config, base_model_name_or_path: NAME }),
      },
    };
    const { cases } = expected("bert-lora-dora");
    const sample = cases.find(({ input }) => typeof input === "string" && /^\w+$/.test(input));
    if (!sample) throw new Error("no case of one word");
    const { stdout } = await mlxcel(`embed -m owner/lora --json -t ${sample.input}`);
    const vector: number[] = JSON.parse(stdout).data[0].embedding;
    const difference = vector.map((value, i) => Math.abs(value - (sample.embedding[i] ?? 0)));
    expect(Math.max(...difference)).toBeLessThan(1e-5);
    expect((await mlxcel("show owner/lora")).stdout).toContain(`adapter of    ${model}`);
  });
});

test("serve downloads before it listens", async () => {
  slowly();
  const starting = startServer(["-m", NAME], { env: environment() });
  await until(() => partBytes() > 0, "nothing arrived");
  await using server = await starting;
  expect(server.stderr()).toContain("owner/bert is complete");
  const { data } = JSON.parse(await (await server.post("/v1/embeddings", { input: "x" })).text());
  expect(data).toHaveLength(1);
  expect(hub.requestsOf(WEIGHTS).filter(ofWeights)).toHaveLength(1);
});

test("with --log-format json a download before the start is told in the log", async () => {
  const flags = ["-m", NAME, "--log-format", "json"];
  await using server = await startServer(flags, { env: environment() });
  const lines = server.stderr().trimEnd().split("\n");
  const messages = lines.map((line): unknown => JSON.parse(line).message);
  expect(messages).toContainEqual(expect.stringMatching(/^owner\/bert is complete/));
});

describe("list, show, rm", () => {
  beforeEach(async () => {
    await mlxcel(`pull ${NAME} --revision v1`);
    mkdirSync(join(store, "mine/copied"), { recursive: true });
    writeFileSync(join(store, "mine/copied/config.json"), "{");
  });

  test("list: a line per model, those of others too", async () => {
    const hourAgo = new Date(Date.now() - 3_700_000);
    await mlxcel(`embed -m ${NAME} -t x`);
    utimesSync(join(store, ".used/owner--bert"), hourAgo, hourAgo);
    const { stdout, exitCode } = await mlxcel("list");
    expect(exitCode).toBe(0);
    const [head, ...lines] = stdout.trimEnd().split("\n");
    expect(head?.split(/ {2,}/)).toEqual(["name", "size", "kind", "family", "last used"]);
    expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
      ["mine/copied", "1 B", "unreadable", "-", "-"],
      [NAME, expect.stringMatching(/kB$/), "embedding", "bert", "1 hour ago"],
    ]);
    expect(JSON.parse((await mlxcel("list --json")).stdout)).toMatchObject([
      { name: "mine/copied", lastUsed: null, commit: null },
      { name: NAME, directory: model, kind: "embedding", revision: "v1", commit: commitOf(bert) },
    ]);
  });

  test("list: a model that is damaged in whatever way has a line like the others, with its fault in --json", async () => {
    writeFileSync(join(model, ".mlxcel.json"), "{");
    mkdirSync(join(store, "mine/parts"));
    writeFileSync(join(store, "mine/parts/a-Q8_0-00001-of-00002.gguf"), "");
    symlinkSync("/no/such/place", join(store, "mine/link"));
    const { stdout } = await mlxcel("list");
    expect(stdout).toMatch(/^mine\/link +0 B +broken link +- +-$/m);
    expect(JSON.parse((await mlxcel("list --json")).stdout)).toMatchObject([
      { name: "mine/copied", kind: "unreadable" },
      { name: "mine/link", fault: expect.stringContaining("is a link to /no/such/place") },
      { name: "mine/parts", fault: expect.stringContaining("in parts, which are not read") },
      { name: NAME, fault: expect.stringContaining("is damaged") },
    ]);
    expect(await mlxcel("rm mine/link -y")).toMatchObject({
      exitCode: 0,
      stderr: "mlxcel: mine/link is deleted, a link to /no/such/place\n",
    });
  });

  test("links that lead round in a circle change nothing for list, show and rm", async () => {
    const [listed, shown] = [await mlxcel("list"), await mlxcel(`show ${NAME}`)];
    symlinkSync("me", join(model, "me"));
    symlinkSync("..", join(model, "up"));
    symlinkSync("../../owner", join(model, "owner"));
    expect(await mlxcel("list")).toEqual(listed);
    expect(await mlxcel(`show ${NAME}`)).toEqual(shown);
    expect((await mlxcel(`rm ${NAME} -y`)).exitCode).toBe(0);
    expect(existsSync(join(store, "owner"))).toBe(false);
  });

  test("list of an empty store says what fills it", async () => {
    const { stdout, stderr, exitCode } = await mlxcel("list", {
      MLXCEL_MODELS_DIR: join(store, "x"),
    });
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 0 });
    expect(stderr).toContain("is empty; mlxcel pull OWNER/NAME fills it");
  });

  test("show: what the configuration and the headers say, without the native library", async () => {
    const broken = { MLXCEL_MLXC_PATH: join(store, "no-library") };
    const { stdout, exitCode } = await mlxcel(`show ${NAME} --json`, broken);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      name: NAME,
      path: model,
      kind: "embedding",
      family: "bert",
      architecture: "BertModel",
      dtype: "F32",
      dim: JSON.parse(readFileSync(join(fixture("bert-mean"), "expected.json"), "utf8")).dim,
      maxLength: JSON.parse(readFileSync(join(fixture("bert-mean"), "expected.json"), "utf8"))
        .max_length,
      pooling: "mean",
      normalized: true,
      source: { endpoint: hub.url, revision: "v1", commit: commitOf(bert) },
    });
    const lines = (await mlxcel(`show ${NAME}`, broken)).stdout;
    for (const part of [
      /^kind +embedding$/m,
      /^revision +v1 \(commit /m,
      /kB {2}model.safetensors$/m,
    ]) {
      expect(lines).toMatch(part);
    }
  });

  test("show of a path, of a reranker, and of what is not here", async () => {
    const shown = await mlxcel(`show ${fixture("bert-cls-dense")} --json`);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      dim: JSON.parse(readFileSync(join(fixture("bert-cls-dense"), "expected.json"), "utf8")).dim,
      pooling: "cls",
      source: { revision: null },
    });
    expect((await mlxcel(`show ${fixture("rerank-bert")}`)).stdout).toMatch(/^kind +reranker$/m);
    expect((await mlxcel("show owner/absent")).stderr).toContain(
      "mlxcel pull owner/absent downloads",
    );
    expect(hub.requestsOf("owner/absent")).toEqual([]);
    const [, shortName = ""] = NAME.split("/");
    for (const command of ["show", "rm"]) {
      expect((await mlxcel(`${command} ${shortName}`)).stderr).toContain(`did you mean ${NAME}?`);
    }
    expect((await mlxcel(`show ${fixture("bert-lora-dora")}`)).stderr).toContain(
      "is an adapter of fixtures/bert-mean, which is not on this machine; mlxcel pull fixtures/bert-mean downloads it",
    );
    expect((await mlxcel(`show ${fixture("bert-pytorch-bin")}`)).stdout).toMatch(
      /^weights +none in safetensors/m,
    );
    expect((await mlxcel(`show ${fixture("qwen3-embed-mlx-4bit")}`)).stdout).toMatch(
      /^weights +affine, 4-bit$/m,
    );
    expect((await mlxcel(`show ${fixture("rerank-qwen3")}`)).stdout).toMatch(
      /^kind +chat; .*--reranker-model$/m,
    );
    expect((await mlxcel("show zzzzzzzzzzzzzzzzzz")).stderr).toContain("mlxcel list shows what is");
  });

  test("rm deletes what is in the store, and asks on a terminal only", async () => {
    const unasked = await mlxcel(`rm ${NAME}`);
    expect(unasked).toMatchObject({ exitCode: 2 });
    expect(unasked.stderr).toContain("give --yes");
    expect(existsSync(model)).toBe(true);
    const { exitCode, stderr } = await mlxcel(`rm ${NAME} -y`);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^mlxcel: owner\/bert is deleted, \d+.\d kB\n$/);
    expect(existsSync(join(store, "owner"))).toBe(false);
  });

  test("show and rm take every name that list shows, and an owner is none", async () => {
    for (const name of ["odd name", "a--b", "name.", "a:b"]) {
      cpSync(fixture("bert-mean"), join(store, "mine", name), { recursive: true });
      const command = (...args: string[]) => run([...args, `mine/${name}`], environment());
      expect((await command("show")).stdout).toContain(`model         mine/${name}\n`);
      expect((await command("rm", "-y")).stderr).toStartWith(`mlxcel: mine/${name} is deleted`);
      expect(existsSync(join(store, "mine", name))).toBe(false);
    }
    for (const name of ["mine", "mine/", ".used", "mine/../mine/copied", join(store, NAME)]) {
      expect((await mlxcel(`rm ${name} -y`)).stderr).toContain("is not in the store");
    }
    expect((await mlxcel("list")).stdout.split("\n")).toHaveLength(4);
  });

  test("no name of a folder can start a line or drive the terminal, except as JSON has it", async () => {
    const name = "mine/a\nb\u001b[2Jc";
    const shown = "mine/a\\u000ab\\u001b[2Jc";
    cpSync(fixture("bert-mean"), join(store, name), { recursive: true });
    expect((await mlxcel("list")).stdout).toContain(`\n${shown}  `);
    expect(JSON.parse((await mlxcel("list --json")).stdout)[0]).toMatchObject({ name });
    const command = (...args: string[]) => run(args, environment());
    const { stdout } = await command("show", name);
    expect(stdout).toStartWith(`model         ${shown}\npath          ${store}/${shown}\n`);
    for (const guessing of ["show", "rm"]) {
      expect((await command(guessing, "mine.a_b_2Jc")).stderr).toContain(`did you mean ${shown}?`);
    }
    expect((await command("doctor")).stdout).toContain(` ${shown}: embedding, bert\n`);
    expect((await command("rm", name, "-y")).stderr).toMatch(/^mlxcel: \S+ is deleted, .*\n$/);
    expect(existsSync(join(store, name))).toBe(false);
  });

  test("rm refuses what is not the store's, and deletes a link but not what it leads to", async () => {
    for (const [name, reason] of [
      ["owner/brt", "did you mean owner/bert?"],
      ["../x", "is not in the store"],
      [fixture("bert-mean"), "is not in the store"],
      [`${NAME}:Q8_0`, "files are not deleted one by one"],
    ]) {
      const refused = await mlxcel(`rm ${name} -y`);
      expect(refused.exitCode).toBeGreaterThan(0);
      expect(refused.stderr).toContain(reason ?? "");
    }
    symlinkSync(model, join(store, "mine/linked"));
    expect((await mlxcel("rm mine/linked -y")).exitCode).toBe(0);
    expect(existsSync(join(store, "mine/linked"))).toBe(false);
    expect(statSync(join(model, WEIGHTS)).size).toBe(weightBytes);
    symlinkSync(dirname(model), join(store, "elsewhere"));
    const refused = await mlxcel(`rm elsewhere/${basename(model)} -y`);
    expect(refused.stderr).toMatch(/^mlxcel: \S+elsewhere is a link to another place.*\n$/);
    expect(statSync(join(model, WEIGHTS)).size).toBe(weightBytes);
  });
});

test.each([
  [0, "0 seconds ago"],
  [61, "1 minute ago"],
  [7300, "2 hours ago"],
  [90_000, "1 day ago"],
])("%d seconds: %s", (seconds, text) => {
  const now = new Date();
  expect(timeAgo(new Date(now.getTime() - seconds * 1000), now)).toBe(text);
});
