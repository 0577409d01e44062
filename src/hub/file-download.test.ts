/** What happens to downloads when connections, disks and bytes go wrong. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { partialDirectory, storedModels } from "./store.ts";
import { freshDownloads, ofWeights, small, WEIGHTS, weights } from "./testing/downloads.ts";
const downloads = freshDownloads();

describe("a download that goes wrong", () => {
  test("a cut connection is taken up where it broke", async () => {
    downloads().spoil({ cutAfterBytes: 100_000 }, ofWeights, 2);
    await downloads().resolve("owner/small");
    expect(downloads().storedWeights("owner/small")).toEqual(weights);
    expect(downloads().hub.rangesOf(WEIGHTS)).toEqual([0, 100_000, 200_000]);
  });

  test("a server that knows no ranges sends it all again", async () => {
    let requests = 0;
    downloads().hub.fault = (request) => {
      if (!ofWeights(request)) return undefined;
      return requests++ === 0 ? { cutAfterBytes: 100_000 } : { ignoreRange: true };
    };
    // 200, not 206: nothing may be appended to what is there
    await downloads().resolve("owner/small");
    expect(downloads().storedWeights("owner/small")).toEqual(weights);
  });

  test("429 and 500 are waited out, with Retry-After", async () => {
    downloads().spoil({ status: 429, headers: { "retry-after": "0" } }, () => true, 2);
    await downloads().resolve("owner/small");
    downloads().hub.repositories["owner/again"] = small;
    downloads().spoil({ status: 500 }, () => true, 2);
    await downloads().resolve("owner/again");
    expect(downloads().storedWeights("owner/again")).toEqual(weights);
  });

  test("a server that never recovers is given up, and what has arrived is kept", async () => {
    downloads().hub.fault = (request) => (ofWeights(request) ? { status: 503 } : undefined);
    await expect(downloads().resolve("owner/small")).rejects.toThrow(
      /answered 503; try again later, what has arrived is kept/,
    );
    expect(storedModels(downloads().store)).toEqual([]);
    expect(downloads().hub.requestsOf(WEIGHTS).filter(ofWeights)).toHaveLength(5);
    downloads().hub.fault = () => undefined;
    downloads().hub.requests.length = 0;
    await downloads().resolve("owner/small");
    expect(downloads().hub.requestsOf("config.json")).toHaveLength(0);
  });

  test("a wait of hours is not waited for", async () => {
    downloads().hub.fault = () => ({ status: 429, headers: { "retry-after": "7200" } });
    await expect(downloads().resolve("owner/small")).rejects.toThrow(
      /\(429\); try again in 7200 s/,
    );
    expect(downloads().hub.requests).toHaveLength(1);
  });

  test("wrong bytes are deleted, said, and fetched again; twice wrong is an error", async () => {
    downloads().spoil({ wrongByte: true }, ofWeights);
    await downloads().resolve("owner/small");
    expect(downloads().remarks).toContainEqual(
      expect.stringContaining("model.safetensors has a wrong checksum"),
    );
    expect(downloads().storedWeights("owner/small")).toEqual(weights);

    downloads().hub.repositories["owner/bad"] = small;
    downloads().hub.fault = (request) => (ofWeights(request) ? { wrongByte: true } : undefined);
    await expect(downloads().resolve("owner/bad")).rejects.toThrow(
      "wrong checksum again and was deleted",
    );
    expect(
      downloads()
        .begun("owner/bad")
        .filter((name) => name.endsWith(".part")),
    ).toEqual([]);
    expect(storedModels(downloads().store)).toEqual(["owner/small"]);
  });

  test("a small file is checked too", async () => {
    downloads().spoil({ wrongByte: true }, ({ path }) => path === "config.json");
    await downloads().resolve("owner/small");
    expect(readFileSync(join(downloads().store, "owner/small/config.json"), "utf8")).toBe("{}");
  });

  test("a byte that rots in what an earlier run has left is found", async () => {
    downloads().spoil({ cutAfterBytes: 100_000 }, ofWeights, 1);
    const stopped = new AbortController();
    const listener = {
      remark: (text: string) => downloads().remarks.push(text),
      progress: (done: number) => done >= 100_000 && stopped.abort(new Error("stopped")),
    };
    await expect(
      downloads().resolve("owner/small", { signal: stopped.signal, listener }),
    ).rejects.toThrow("stopped");
    const part =
      downloads()
        .begun("owner/small")
        .find((name) => name.endsWith(".part")) ?? "";
    const path = join(partialDirectory(downloads().store, "owner/small"), part);
    const bytes = readFileSync(path);
    bytes[500] = (bytes[500] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    downloads().hub.requests.length = 0;
    await downloads().resolve("owner/small");
    expect(downloads().hub.rangesOf(WEIGHTS)).toEqual([bytes.length, 0]);
    expect(downloads().storedWeights("owner/small")).toEqual(weights);
  });

  test("more bytes than the file has are not taken", async () => {
    const sha256 = new Bun.CryptoHasher("sha256").update(weights).digest("hex");
    const partial = partialDirectory(downloads().store, "owner/small");
    mkdirSync(partial, { recursive: true });
    writeFileSync(join(partial, `${sha256}.part`), Buffer.concat([weights, weights]));
    await downloads().resolve("owner/small");
    expect(downloads().storedWeights("owner/small")).toEqual(weights);
  });

  test("a hub that is not there: one line, at once", async () => {
    const env = { HF_ENDPOINT: "http://127.0.0.1:1" };
    await expect(downloads().resolve("owner/small", { env })).rejects.toThrow(
      "no connection to 127.0.0.1:1 (ECONNREFUSED): check the network",
    );
  });

  test("an endpoint that is no hub or no URL is named", async () => {
    await expect(downloads().resolve("o/x", { env: { HF_ENDPOINT: "hub" } })).rejects.toThrow(
      "HF_ENDPOINT takes",
    );
    await using web = Bun.serve({ port: 0, fetch: () => new Response("<html>") });
    const env = { HF_ENDPOINT: web.url.href };
    await expect(downloads().resolve("o/x", { env })).rejects.toThrow("does not answer like a hub");
  });

  test("too little disk is said before anything of size is fetched", async () => {
    downloads().hub.repositories["owner/huge"] = { ...small, listedBytes: { [WEIGHTS]: 2 ** 50 } };
    await expect(downloads().resolve("owner/huge")).rejects.toThrow(
      /owner\/huge needs 1125.9 TB more, but only .* free in .*--models-dir/,
    );
    expect(downloads().hub.rangesOf(WEIGHTS)).toEqual([]);
  });
});

test("an exchange of directories that was broken off is undone", async () => {
  await downloads().resolve("owner/small");
  const partial = partialDirectory(downloads().store, "owner/small");
  mkdirSync(partial);
  renameSync(join(downloads().store, "owner/small"), join(partial, "previous"));
  downloads().hub.requests.length = 0;
  await downloads().resolve("owner/small");
  expect(downloads().storedWeights("owner/small")).toEqual(weights);
  expect(downloads().hub.rangesOf(WEIGHTS)).toEqual([]);
});

const canMount = process.platform === "linux" && process.getuid?.() === 0;

// needs root on Linux: a small disk is mounted
test.skipIf(!canMount)("a full disk: one line, and what has arrived is kept", async () => {
  const disk = join(downloads().store, "disk");
  mkdirSync(disk);
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=500k", "tmpfs", disk]);
  expect(mounted.exitCode).toBe(0);
  try {
    const filler = join(disk, "filler");
    const listener = {
      remark: () => {},
      // somebody else fills the disk after the space was checked
      progress: (doneBytes: number) => {
        if (doneBytes >= 100_000 && !existsSync(filler)) fill(filler, 300_000);
      },
    };
    downloads().hub.fault = (request) =>
      ofWeights(request) ? { slow: { pieceBytes: 50_000, pauseMs: 10 } } : undefined;
    await expect(downloads().resolve("owner/small", { modelsDir: disk, listener })).rejects.toThrow(
      /the disk of \S+ is full: free some space.*what has arrived is kept/,
    );
    rmSync(filler);
    await downloads().resolve("owner/small", { modelsDir: disk });
    expect(readFileSync(join(disk, "owner/small", WEIGHTS))).toEqual(weights);
    const [first, second] = downloads().hub.rangesOf(WEIGHTS);
    expect(first).toBe(0);
    expect(second).toBeGreaterThanOrEqual(100_000);
  } finally {
    Bun.spawnSync(["umount", disk]);
  }
});

/** As far as there is room. */
function fill(path: string, bytes: number): void {
  try {
    writeFileSync(path, new Uint8Array(bytes));
  } catch {
    // which is what it is for
  }
}
