/** What the hub refuses, and what is never told or given to anybody. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseModelName } from "./model-name.ts";
import { storedModels } from "./store.ts";
import { freshDownloads, ofWeights, small, WEIGHTS } from "./testing/downloads.ts";
const downloads = freshDownloads();

describe("refusals", () => {
  const token = "hf_secret_token";
  test.each([
    [
      401,
      { "x-error-code": "GatedRepo" },
      undefined,
      /is gated: accept its licence at \S+\/owner\/small, then set HF_TOKEN/,
    ],
    [
      403,
      { "x-error-code": "GatedRepo" },
      token,
      /is gated, and the token's account has no access: accept/,
    ],
    [
      401,
      { "x-error-message": "Invalid credentials in Authorization header" },
      token,
      /does not accept the token/,
    ],
    [
      404,
      { "x-error-code": "RepoNotFound" },
      undefined,
      /was not found at \S+: check the spelling.*set HF_TOKEN/,
    ],
    [404, {}, token, /was not found.*use a token that may read it/],
    [451, { "x-error-message": "not   here" }, undefined, /answered 451: not here/],
  ])("%d %j: what to do next", async (status, headers, given, message) => {
    downloads().hub.fault = (request) =>
      request.path === undefined ? { status, headers } : undefined;
    const failure = await downloads().resolve("owner/small", { token: given }).catch(String);
    expect(failure).toMatch(message);
    expect(failure).not.toContain(token);
    expect(downloads().hub.requests).toHaveLength(1);
  });

  test("a repository that does not exist, and a revision that does not", async () => {
    await expect(downloads().resolve("owner/absent")).rejects.toThrow("check the spelling");
    await expect(downloads().resolve("owner/small", { revision: "v9" })).rejects.toThrow(
      "has no revision v9",
    );
    expect(storedModels(downloads().store)).toEqual([]);
  });

  test("a password in HF_ENDPOINT is not shown", async () => {
    const { hub } = downloads();
    hub.fault = () => ({ status: 401, headers: { "x-error-code": "GatedRepo" } });
    const env = { HF_ENDPOINT: hub.url.replace("//", "//me:secret@") };
    const failure = await downloads().resolve("owner/small", { env }).catch(String);
    expect(failure).toContain(`accept its licence at ${hub.url}/owner/small`);
  });

  test("gated files of a repository whose listing is public", async () => {
    downloads().spoil({ status: 401, headers: { "x-error-code": "GatedRepo" } }, ofWeights);
    await expect(downloads().resolve("owner/small")).rejects.toThrow("is gated");
  });
});

describe("the token", () => {
  test("goes to the hub, never to the host that it redirects to, and into no line", async () => {
    await downloads().resolve("owner/small", { token: "hf_secret" });
    const sent = (server: string) => [
      ...new Set(
        downloads()
          .hub.requests.filter((request) => request.server === server)
          .map(({ headers }) => headers.authorization),
      ),
    ];
    expect(sent("hub")).toEqual(["Bearer hf_secret"]);
    expect(sent("cdn")).toEqual([undefined]);
    expect(downloads().remarks.join()).not.toContain("hf_secret");
    expect(readFileSync(join(downloads().store, "owner/small/.mlxcel.json"), "utf8")).not.toContain(
      "hf_secret",
    );
  });

  test("neither the token nor a signed URL is in an error", async () => {
    downloads().hub.fault = (request) => (ofWeights(request) ? { cutAfterBytes: 0 } : undefined);
    const failure = await downloads().resolve("owner/small", { token: "hf_secret" }).catch(String);
    expect(failure).toMatch(/broke|cut off/);
    expect(failure).not.toMatch(/secret/);
  });

  test("that the hub's own command line has stored is used", async () => {
    writeFileSync(join(downloads().store, "token"), "hf_stored\n");
    await downloads().resolve("owner/small", {
      env: { HF_ENDPOINT: downloads().hub.url, HF_HOME: downloads().store },
    });
    expect(downloads().hub.requests[0]?.headers.authorization).toBe("Bearer hf_stored");
  });
});

describe("names are not trusted", () => {
  test.each(["../escape", "/etc/x", "..", "a/../../x", "a\\..\\x"])(
    "a module folder %s is refused",
    async (path) => {
      downloads().hub.repositories["owner/evil"] = {
        files: { ...small.files, "modules.json": JSON.stringify([{ path }]), evil: "x" },
        listedAs: { evil: `${path}/config.json` },
      };
      await expect(downloads().resolve("owner/evil")).rejects.toThrow(
        "is not inside the repository",
      );
      expect(storedModels(downloads().store)).toEqual([]);
    },
  );

  test.each([
    "../evil-Q8_0.gguf",
    "/tmp/evil-Q8_0.gguf",
    "a/../../evil-Q8_0.gguf",
    "C:\\evil-Q8_0.gguf",
  ])("a listed path %s is not there for us", async (path) => {
    downloads().hub.repositories["owner/evil"] = { files: { evil: "x" }, listedAs: { evil: path } };
    await expect(downloads().resolve("owner/evil:Q8_0")).rejects.toThrow("it has no GGUF file");
    expect(existsSync(join(downloads().store, "evil-Q8_0.gguf"))).toBe(false);
  });

  test.each([
    "../secret",
    "a/..",
    "a/.b",
    "./a/b",
    "a/b/c",
    "~/a",
    "a--b/c",
    "a/b:../c",
    "a\u0000/b",
    "",
  ])("%j is no repository", (name) => {
    expect(parseModelName(name)).toBeUndefined();
  });

  test("a listing with an id that is no checksum is refused", async () => {
    await using web = Bun.serve({
      port: 0,
      fetch: ({ url }) =>
        url.includes("/tree/")
          ? Response.json([{ type: "file", path: WEIGHTS, size: 1, oid: "../../x" }])
          : Response.json({ sha: "c".repeat(40) }),
    });
    const env = { HF_ENDPOINT: web.url.href };
    await expect(downloads().resolve("owner/evil", { env })).rejects.toThrow(
      "does not answer like a hub",
    );
  });
});

describe("a hub that is none, or means harm", () => {
  /** The refusal of a download from a server that answers everything like this. */
  async function refusalOf(fetch: (url: URL) => Response): Promise<string> {
    await using server = Bun.serve({ port: 0, fetch: ({ url }) => fetch(new URL(url)) });
    const env = { HF_ENDPOINT: server.url.href };
    return await downloads().resolve("owner/small", { env }).then(String, String);
  }

  const commit = () => Response.json({ sha: "a".repeat(40) });
  const isCommit = ({ pathname }: URL) => pathname.includes("/revision/");

  test("an answer without end is given up", async () => {
    const blank = new Uint8Array(1 << 20).fill(0x20);
    const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(blank) });
    expect(await refusalOf(() => new Response(endless()))).toContain("does not answer like a hub");
  });

  test("pages without end are given up", async () => {
    const again = ({ href }: URL) =>
      Response.json([], { headers: { link: `<${href}>; rel="next"` } });
    const refusal = await refusalOf((url) => (isCommit(url) ? commit() : again(url)));
    expect(refusal).toContain("does not answer like a hub");
  });

  test.each([
    ["file:///etc/hostname", /leads to file:\/\/, which is not safe/],
    ["http://[", /does not answer like a hub/],
  ])("neither a redirect nor a next page leads to %s", async (target, message) => {
    const redirect = () => new Response(null, { status: 302, headers: { location: target } });
    expect(await refusalOf(redirect)).toMatch(message);
    const page = () => Response.json([], { headers: { link: `<${target}>; rel="next"` } });
    const refusal = await refusalOf((url) => (isCommit(url) ? commit() : page()));
    expect(refusal).toMatch(message);
  });

  test.each([
    ["{not json", /its modules.json lists no modules/],
    [JSON.stringify([{ path: "config.json" }]), /cannot hold files named as the hub lists them/],
    [JSON.stringify([{ path: "n".repeat(300) }]), /cannot hold files named as the hub lists them/],
  ])("modules that cannot be: %s", async (modules, message) => {
    const [{ path = "" } = {}] = modules.startsWith("[") ? JSON.parse(modules) : [];
    downloads().hub.repositories["owner/odd"] = {
      ...small,
      files: { ...small.files, "modules.json": modules, [`${path}/config.json`]: "{}" },
    };
    const failure = await downloads().resolve("owner/odd").then(String, String);
    expect(failure).toMatch(message);
    expect(failure).not.toContain("\n");
  });
});
