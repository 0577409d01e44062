/** The files of a release: executables, archives, checksums, a Homebrew formula, bills of materials. */
import { copyFileSync, cpSync, globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { run } from "./command.ts";
import { billOfMaterials, type Component, licensesText } from "./components.ts";
import { sha256Of } from "./download.ts";
import { formula, launchAgent, type Release } from "./homebrew.ts";
import { vendorFolder } from "./pinned.ts";
import type { Target } from "./targets.ts";

/** An executable and what it is made of. */
export interface Product {
  readonly target: Target;
  readonly executable: string;
  readonly components: readonly Component[];
}

/** The smallest embedder of the repository: enough to try an installation without a network. */
const TINY = join(vendorFolder, "../test/fixtures/bert-f16");
const ENTRY_TIME = "2024-01-01T00:00:00Z";

/** Name of the executable in a release: a Mac's users type the shorter one. */
function assetName(target: Target): string {
  return target === "darwin-arm64" ? "mlxcel" : `mlxcel-${target}`;
}

/** Writes the release into `dist`, which is emptied before; returns the names of the files. */
export async function writeRelease(
  products: readonly Product[],
  release: Release,
  dist: string,
): Promise<string[]> {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  for (const product of products) {
    const { target, executable, components } = product;
    copyFileSync(executable, join(dist, assetName(target)));
    await writeFile(join(dist, `sbom-${target}.json`), billOfMaterials(components));
    const archive = await writeArchive(product, release, dist);
    if (target === "darwin-arm64") {
      const sha256 = await sha256Of(archive);
      await writeFile(
        join(dist, "mlxcel.rb"),
        formula(release, { name: basename(archive), sha256 }),
      );
    }
  }
  await writeFile(join(dist, "mlxcel.plist"), launchAgent);
  const names = globSync("*", { cwd: dist }).sort();
  const sums = await Promise.all(
    names.map(async (name) => `${await sha256Of(join(dist, name))}  ${name}\n`),
  );
  await writeFile(join(dist, "SHA256SUMS"), sums.join(""));
  return [...names, "SHA256SUMS"];
}

/** The executable, the licences and share/mlxcel in one folder; the same content gives the same bytes. */
async function writeArchive(
  { target, executable, components }: Product,
  { version }: Release,
  dist: string,
): Promise<string> {
  const name = `mlxcel-${version}-${target}`;
  const staging = mkdtempSync(join(dist, "archive.tmp."));
  try {
    const folder = join(staging, name);
    const share = join(folder, "share/mlxcel");
    mkdirSync(share, { recursive: true });
    copyFileSync(executable, join(folder, "mlxcel"));
    await writeFile(join(folder, "LICENSES.txt"), licensesText(components));
    await writeFile(join(share, "mlxcel.plist"), launchAgent);
    cpSync(TINY, join(share, "tiny"), {
      recursive: true,
      filter: (path) => basename(path) !== "expected.json",
    });
    const plain = join(staging, "archive.tar");
    await run(
      [
        ...["tar", "--create", "--file", plain, "--format=ustar", "--sort=name"],
        ...[`--mtime=${ENTRY_TIME}`, "--owner=0", "--group=0", "--numeric-owner"],
        ...["--mode=u=rwX,go=rX", "--directory", staging, name],
      ],
      { log: "tar" },
    );
    const archive = join(dist, `${name}.tar.gz`);
    await writeFile(archive, Bun.gzipSync(await Bun.file(plain).bytes(), { level: 6 }));
    return archive;
  } finally {
    rmSync(staging, { recursive: true });
  }
}
