import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixture, referenceCase, temporaryDirectory } from "../checkpoints.ts";
import { run, startServer } from "../server.ts";
import { embedOne, expectAlive, expectVector, okJson } from "./answers.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-mean")];
const CERTIFICATE = join(import.meta.dir, "tls/certificate.pem");
const KEY = join(import.meta.dir, "tls/key.pem");
const TLS = ["--ssl-cert-file", CERTIFICATE, "--ssl-key-file", KEY];
const { input, embedding } = referenceCase("bert-mean", "medium");

test("--host with a path ending in .sock listens on a unix socket, and leaves it free", async () => {
  const unix = join(temporaryDirectory(), "mlxcel.sock");
  for (let start = 0; start < 2; start++) {
    await using server = await startServer([...MODEL, "--host", unix], { unix });
    expectVector(await embedOne(server, input), embedding);
    expect(server.stdout()).toContain(unix);
    expect(await server.stop()).toBe(0);
  }
});

test("a socket left behind by a killed server is taken over", async () => {
  const unix = join(temporaryDirectory(), "mlxcel.sock");
  await using killed = await startServer([...MODEL, "--host", unix], { unix });
  await killed.stop("SIGKILL");
  expect(existsSync(unix)).toBe(true);
  await using server = await startServer([...MODEL, "--host", unix], { unix });
  await expectAlive(server);
});

test("a socket that a server listens on, or a file in its place, is left alone", async () => {
  const directory = temporaryDirectory();
  const unix = join(directory, "mlxcel.sock");
  await using server = await startServer([...MODEL, "--host", unix], { unix });
  const file = join(directory, "notes.sock");
  writeFileSync(file, "mine");
  for (const path of [unix, file]) {
    const { exitCode, stderr } = await run([...MODEL, "--host", path]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(path);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  }
  expect(readFileSync(file, "utf8")).toBe("mine");
  await expectAlive(server);
});

test("TLS with the certificate and key that were given", async () => {
  const certificate = readFileSync(CERTIFICATE, "utf8");
  await using server = await startServer([...MODEL, ...TLS], { certificate });
  expect(server.url).toStartWith("https://");
  expectVector(await embedOne(server, input), embedding);
  await okJson(await server.get("/v1/models"));
  await expect(fetch(`${server.url}/health`, { keepalive: false, tls: {} })).rejects.toThrow();
  expect(await server.stop()).toBe(0);
});

test("a certificate that is none stops the start in one line that names the file", async () => {
  const broken = join(temporaryDirectory(), "broken.pem");
  writeFileSync(broken, "not a certificate");
  const { exitCode, stderr } = await run([
    ...["serve", "--port", "0", ...MODEL],
    ...["--ssl-cert-file", broken, "--ssl-key-file", KEY],
  ]);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(broken);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});
