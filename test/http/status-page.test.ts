import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { embed } from "./answers.ts";

setDefaultTimeout(60_000);

const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const MODELS = [
  "--embedding-model",
  fixture("bert-mean"),
  "--reranker-model",
  fixture("rerank-bert"),
];
/** Those that Debian and macOS install. */
const BROWSERS = [
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

let server: Server;
beforeAll(async () => {
  server = await startServer([...MODELS, "--api-key", "secret"]);
});
afterAll(() => server?.stop());

describe("the address of the server", () => {
  test("is a page for browsers, JSON for everyone else", async () => {
    const page = await server.get("/", HTML);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("vary")).toContain("accept");
    expect(await page.text()).toStartWith("<!doctype html>");
    for (const accept of ["*/*", "application/json", "application/json, text/html"]) {
      expect(await (await server.get("/", { accept })).json()).toEqual({ status: "ok" });
    }
    expect(await (await server.get("/health", HTML)).json()).toEqual({ status: "ok" });
  });

  test("/status tells models, queues and load, and asks for the key", async () => {
    expect((await server.get("/status")).status).toBe(401);
    const key = { authorization: "Bearer secret" };
    const status = await (await server.get("/status", key)).json();
    expect(status).toMatchObject({
      version: expect.any(String),
      models: [
        { id: "bert-mean", kind: "embedding", state: "ready", waiting: 0, queue_depth: 8 },
        { id: "rerank-bert", kind: "reranker", state: "ready", waiting: 0, queue_depth: 8 },
      ],
      per_second: { requests: expect.any(Number), items: expect.any(Number) },
    });
  });
});

const executablePath = await installedBrowser();

describe.skipIf(!executablePath)("in Chromium (skipped where none is installed)", () => {
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: executablePath ?? "",
      // as root it has no sandbox; it must not call home from a test
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    });
    page = await browser.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().includes("401"))
        faults.push(message.text());
    });
    await page.goto(server.url);
  });
  afterAll(() => browser?.close());

  test("it asks for a key and then shows the models and the load", async () => {
    await page.locator("#key").fill("secret");
    await page.locator("#key-form button").click();
    await page.locator("#models tbody tr").nth(1).waitFor();
    const rows = await page.locator("#models tbody tr").allTextContents();
    expect(rows).toEqual(["bert-meanembeddingready0 of 8", "rerank-bertrerankerready0 of 8"]);
    expect(await page.locator("#state").textContent()).toBe("ready");
    expect(await page.locator("#key-form").isHidden()).toBe(true);
  });

  test("texts become a heat map of the cosines of their vectors", async () => {
    const input = ["vector search", "an old fox", "<b>not bold</b>"];
    await page.locator("#texts").fill(input.join("\n"));
    await page.locator("#embedding button").click();
    await page.locator("#heat-map td").nth(8).waitFor();
    const shown = (await page.locator("#heat-map td").allTextContents()).map(Number);
    await using open = await startServer(["--embedding-model", fixture("bert-mean")]);
    const { vectors } = await embed(open, { input });
    const dot = (a: readonly number[], b: readonly number[]) =>
      a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
    const expected = vectors.flatMap((a) => vectors.map((b) => Number(dot(a, b).toFixed(2))));
    expect(shown).toEqual(expected);
    expect(await page.locator("#heat-map th").last().textContent()).toBe("3 <b>not bold</b>");
    expect(await page.locator("#embedding output").textContent()).toMatch(/^\d+ tokens, \d+ ms$/);
    await page.locator("#tokens", { hasNotText: /^(–|0)$/ }).waitFor();
  });

  test("documents are ranked, and the server's own words say what is wrong", async () => {
    await page.locator("#query").fill("which model");
    await page.locator("#documents").fill("the model\nan engine\n");
    await page.locator("#ranking button").click();
    await page.locator("#ranks li").nth(1).waitFor();
    const ranks = await page.locator("#ranks li").allTextContents();
    expect(ranks.map((rank) => rank.replace(/^[\d.]+ */, "")).sort()).toEqual([
      "an engine",
      "the model",
    ]);
    await page.locator("#documents").fill("");
    await page.locator("#ranking button").click();
    await page.locator("#ranking output.error").waitFor();
    expect(await page.locator("#ranking output").textContent()).toContain("documents");
  });

  test("nothing failed in the page, and nothing was loaded from elsewhere", () => {
    expect(faults.filter((fault) => !fault.includes("400"))).toEqual([]);
  });
});

async function installedBrowser(): Promise<string | undefined> {
  for (const path of BROWSERS) if (await Bun.file(path).exists()) return path;
  return undefined;
}
