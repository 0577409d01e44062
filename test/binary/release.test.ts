/** What `build.ts --release` makes. */
import { beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { version } from "../../package.json";
import { temporaryDirectory } from "../fixtures/fixtures.ts";
import { build, builtExecutable, builtMacExecutable, User } from "./user.ts";

const DIST = join(temporaryDirectory("release"), "dist");
const URL = "https://example.org/mlxcel/releases/v1";
const BUILD_MS = 20 * 60_000;
const MAC_ARCHIVE = `mlxcel-${version}-darwin-arm64.tar.gz`;
const LINUX_ARCHIVE = `mlxcel-${version}-linux-x64.tar.gz`;

const unpacked = temporaryDirectory("unpacked");
beforeAll(async () => {
  await builtExecutable();
  await builtMacExecutable();
  await build("--release", "--release-url", `${URL}/`, "--out", DIST);
  Bun.spawnSync(["tar", "-xzf", join(DIST, LINUX_ARCHIVE), "-C", unpacked]);
}, BUILD_MS);

function text(name: string): string {
  return readFileSync(join(DIST, name), "utf8");
}

function sha256(name: string): string {
  return createHash("sha256")
    .update(readFileSync(join(DIST, name)))
    .digest("hex");
}

test("a release holds both executables, their archives and what goes with them", () => {
  expect(readdirSync(DIST).sort()).toEqual(
    [
      ...["SHA256SUMS", "mlxcel", "mlxcel-linux-x64", "mlxcel.plist", "mlxcel.rb"],
      ...[MAC_ARCHIVE, LINUX_ARCHIVE, "sbom-darwin-arm64.json", "sbom-linux-x64.json"],
    ].sort(),
  );
});

test("SHA256SUMS fits every other file", () => {
  const sums = text("SHA256SUMS").trimEnd().split("\n").sort();
  const expected = readdirSync(DIST)
    .filter((name) => name !== "SHA256SUMS")
    .map((name) => `${sha256(name)}  ${name}`);
  expect(sums).toEqual(expected.sort());
});

test("an archive holds the executable, the licences and a model to try it with", async () => {
  const folder = join(unpacked, `mlxcel-${version}-linux-x64`);
  expect(readdirSync(folder).sort()).toEqual(["LICENSES.txt", "mlxcel", "share"]);
  expect(statSync(join(folder, "mlxcel")).mode & 0o777).toBe(0o755);
  const tiny = join(folder, "share/mlxcel/tiny");
  expect(existsSync(join(tiny, "expected.json"))).toBe(false);
  using user = new User(join(folder, "mlxcel"));
  // What the formula's test runs.
  const embed = ["embed", "-m", tiny, "--device", "cpu", "--json", "-t", "hello"];
  const { stdout, exitCode } = await user.run(embed);
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ data: [{ object: "embedding" }] });
  expect((await user.run(["licenses"])).stdout).toBe(
    readFileSync(join(folder, "LICENSES.txt"), "utf8"),
  );
});

test("the same release has the same bytes", async () => {
  const before = text("SHA256SUMS");
  await build("--release", "--release-url", URL, "--out", DIST);
  expect(text("SHA256SUMS")).toBe(before);
});

describe("the Homebrew formula", () => {
  test("installs the archive for a Mac from the address of the release", () => {
    const formula = text("mlxcel.rb");
    for (const line of [
      `url "${URL}/${MAC_ARCHIVE}"`,
      `sha256 "${sha256(MAC_ARCHIVE)}"`,
      `version "${version}"`,
      'license "Apache-2.0"',
      "depends_on arch: :arm64",
      "depends_on macos: :sonoma",
      'bin.install "mlxcel"',
      'run [opt_bin/"mlxcel", "serve"]',
      'assert_match version.to_s, shell_output("#{bin}/mlxcel --version")',
      'embed = "#{bin}/mlxcel embed -m #{pkgshare}/tiny --device cpu --json -t hello"',
    ]) {
      expect(formula).toMatch(new RegExp(`^ +${RegExp.escape(line)}$`, "m"));
    }
    expect(formula).toContain("def caveats");
  });

  test.skipIf(Bun.which("ruby") === null)("is Ruby (skipped: there is no ruby)", () => {
    const { stdout, exitCode } = Bun.spawnSync(["ruby", "-c", join(DIST, "mlxcel.rb")]);
    expect({ said: stdout.toString(), exitCode }).toEqual({ said: "Syntax OK\n", exitCode: 0 });
  });

  test("its archive has what it installs", () => {
    const { stdout } = Bun.spawnSync(["tar", "-tzf", join(DIST, MAC_ARCHIVE)]);
    const names = stdout.toString().trim().split("\n");
    const folder = `mlxcel-${version}-darwin-arm64`;
    for (const name of ["mlxcel", "LICENSES.txt", "share/mlxcel/tiny/model.safetensors"]) {
      expect(names).toContain(`${folder}/${name}`);
    }
  });
});

test("the launchd agent is a property list that starts the server", () => {
  const read = "import json, plistlib, sys; print(json.dumps(plistlib.load(sys.stdin.buffer)))";
  const { stdout } = Bun.spawnSync(["python3", "-c", read], {
    stdin: Bun.file(join(DIST, "mlxcel.plist")),
  });
  expect(JSON.parse(stdout.toString())).toMatchObject({
    Label: "mlxcel",
    ProgramArguments: ["/usr/local/bin/mlxcel", "serve", "--port", "8080"],
    RunAtLoad: true,
  });
});

const Bill = z.object({
  bomFormat: z.literal("CycloneDX"),
  specVersion: z.literal("1.6"),
  metadata: z.object({ component: z.object({ name: z.literal("mlxcel") }) }),
  components: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      purl: z.string().startsWith("pkg:"),
      licenses: z.array(z.object({ expression: z.string().min(3) })).length(1),
    }),
  ),
});

test.each([
  ["darwin-arm64", ["bun", "mlx", "mlx-c", "zod", "sharp", "@img/sharp-darwin-arm64", "libvips"]],
  ["linux-x64", ["bun", "mlx", "mlx-c", "openblas", "zod", "sharp", "libvips"]],
])("the bill of materials for %s names what is inside", (target, parts) => {
  const { components } = Bill.parse(JSON.parse(text(`sbom-${target}.json`)));
  const names = components.map(({ name }) => name);
  for (const part of parts) expect(names).toContain(part);
});

test("a release without an address for its files is refused", async () => {
  await expect(build("--release")).rejects.toThrow("--release needs --release-url");
});
