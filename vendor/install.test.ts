import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installFolder, isInstalled } from "./install.ts";

let parent: string;
let folder: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "mlxcel-install-"));
  folder = join(parent, "linux-x64");
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

async function installOneFile(key: string, content: string): Promise<void> {
  await installFolder(folder, key, async (temporary) => {
    writeFileSync(join(temporary, "libmlxc.so"), content);
  });
}

test("an installed folder is reused for its own key and for no other", async () => {
  await installOneFile("key-1", "one");
  expect(isInstalled(folder, "key-1")).toBe(true);
  expect(isInstalled(folder, "key-2")).toBe(false);
});

test("a changed key replaces the folder and leaves nothing beside it", async () => {
  await installOneFile("key-1", "one");
  await installOneFile("key-2", "two");
  expect(isInstalled(folder, "key-2")).toBe(true);
  expect(readFileSync(join(folder, "libmlxc.so"), "utf8")).toBe("two");
  expect(readdirSync(parent)).toEqual(["linux-x64"]);
});

test("an install that fails half way leaves the earlier set in use", async () => {
  await installOneFile("key-1", "one");
  const failed = installFolder(folder, "key-2", async (temporary) => {
    writeFileSync(join(temporary, "libmlxc.so"), "half");
    throw new Error("interrupted");
  });
  expect(failed).rejects.toThrow("interrupted");
  await failed.catch(() => undefined);
  expect(isInstalled(folder, "key-2")).toBe(false);
  expect(isInstalled(folder, "key-1")).toBe(true);
  expect(readdirSync(parent)).toEqual(["linux-x64"]);
});

test("what a killed install left is not used and is removed by the next one", async () => {
  mkdirSync(`${folder}.tmp.4242`);
  writeFileSync(join(`${folder}.tmp.4242`, "libmlxc.so"), "half");
  expect(isInstalled(folder, "key-1")).toBe(false);
  await installOneFile("key-1", "one");
  expect(existsSync(`${folder}.tmp.4242`)).toBe(false);
  expect(isInstalled(folder, "key-1")).toBe(true);
});

test("a folder without a stamp is not used", () => {
  mkdirSync(folder);
  writeFileSync(join(folder, "libmlxc.so"), "half");
  expect(isInstalled(folder, "key-1")).toBe(false);
});
