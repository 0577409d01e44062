import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError } from "./command.ts";
import { clientError, verifySha256 } from "./download.ts";

const SHA256_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mlxcel-download-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a file with the pinned hash passes", async () => {
  writeFileSync(join(folder, "mlx.whl"), "abc");
  await verifySha256(join(folder, "mlx.whl"), SHA256_OF_ABC);
});

test("a file with another hash is refused by name, with the expected and the found hash", async () => {
  writeFileSync(join(folder, "mlx.whl"), "abc");
  const expected = "0".repeat(64);
  expect(verifySha256(join(folder, "mlx.whl"), expected)).rejects.toThrow(
    `mlx.whl is not the pinned file: expected sha256 ${expected}, got ${SHA256_OF_ABC}`,
  );
});

test("a package client without network is told apart from one that failed", () => {
  const offline = new CommandError(
    [
      "WARNING: Retrying after connection broken by 'NewConnectionError(...)'",
      "ERROR: No matching distribution found for mlx-cpu==0.32.2",
    ],
    "pip.log",
  );
  expect(clientError("pip", "mlx-cpu 0.32.2", offline).message).toBe(
    "no network: pip could not fetch mlx-cpu 0.32.2; connect and run it again (log: pip.log)",
  );
  const unknown = new CommandError(
    ["ERROR: No matching distribution found for mlx-cpu"],
    "pip.log",
  );
  expect(clientError("pip", "mlx-cpu 0.32.2", unknown).message).toBe(
    "pip could not fetch mlx-cpu 0.32.2: ERROR: No matching distribution found for mlx-cpu (log: pip.log)",
  );
});

test("npm is quoted with its reason, not with where its log is", () => {
  const log = "npm error A complete log of this run can be found in: debug-0.log";
  const failing = (reason: string) =>
    clientError("npm", "bun 1.4.5", new CommandError(["npm error code E", reason, log], "npm.log"));
  expect(failing("npm error 404 Not Found").message).toBe(
    "npm could not fetch bun 1.4.5: npm error 404 Not Found (log: npm.log)",
  );
  expect(failing("npm error request failed, reason: getaddrinfo ENOTFOUND").message).toBe(
    "no network: npm could not fetch bun 1.4.5; connect and run it again (log: npm.log)",
  );
});
