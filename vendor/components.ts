/** What an executable is made of, with the licences: for `mlxcel licenses` and the bill of materials. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import manifest from "../package.json" with { type: "json" };
import { pinnedMlxC, pinnedPlatforms, vendorFolder } from "./pinned.ts";
import { SetupError } from "./setup-error.ts";
import type { Target } from "./targets.ts";

export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Package URL: where it was taken from. */
  readonly purl: string;
  readonly licenseText: string;
  /** What it was built from, by name and version. */
  readonly parts?: Readonly<Record<string, string>>;
}

/** Where the parts of an executable lie: the native set with its folder `licenses`, and a node_modules folder. */
interface ComponentPlaces {
  readonly target: Target;
  readonly nativeSet: string;
  readonly modules: string;
}

const root = join(vendorFolder, "..");

/** Everything inside an executable, the program itself first. */
export function componentsOf(places: ComponentPlaces): Component[] {
  return [program(), bun(), ...nativeComponents(places), ...npmComponents(places), libvips(places)];
}

function program(): Component {
  const { name, version, license } = manifest;
  const licenseText = readFileSync(join(root, "LICENSE"), "utf8");
  return { name, version, license, purl: `pkg:generic/${name}@${version}`, licenseText };
}

function bun(): Component {
  return {
    name: "bun",
    version: Bun.version,
    license: "MIT AND LGPL-2.1-or-later",
    purl: `pkg:github/oven-sh/bun@bun-v${Bun.version}`,
    licenseText: readFileSync(join(vendorFolder, "licenses/bun.txt"), "utf8"),
  };
}

function nativeComponents({ target, nativeSet }: ComponentPlaces): Component[] {
  const text = (name: string) => readFileSync(join(nativeSet, "licenses", `${name}.txt`), "utf8");
  const pins = pinnedPlatforms[target];
  if (pins === undefined) throw new Error(`no pins for ${target}`);
  const { mlx, openblas } = pins;
  return [
    {
      name: "mlx",
      version: mlx.version,
      license: "MIT",
      purl: `pkg:pypi/${mlx.name}@${mlx.version}`,
      licenseText: text("mlx"),
    },
    {
      name: "mlx-c",
      version: pinnedMlxC.version,
      license: "MIT",
      purl: `pkg:cargo/${pinnedMlxC.crate}@${pinnedMlxC.version}`,
      licenseText: text("mlx-c"),
    },
    ...(openblas === undefined
      ? []
      : [
          {
            name: "openblas",
            version: openblas.version,
            // libgfortran and libquadmath, BLAS and LAPACK come with it and with MLX.
            license: "BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1",
            purl: `pkg:pypi/${openblas.name}@${openblas.version}`,
            licenseText: text("openblas"),
          },
        ]),
  ];
}

const Lockfile = z.object({
  packages: z.record(
    z.string(),
    z.object({ dev: z.boolean().optional(), optional: z.boolean().optional() }),
  ),
});
const Parts = z.object({ vips: z.string() }).catchall(z.string());
const Package = z.object({ name: z.string(), version: z.string(), license: z.string() });

/** Packages that the program imports, directly or not, and sharp's addon. */
function npmComponents({ target, modules }: ComponentPlaces): Component[] {
  const lockfile: unknown = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const imported = Object.entries(Lockfile.parse(lockfile).packages)
    .filter(([path, { dev, optional }]) => path !== "" && !dev && !optional)
    .map(([path]) => path.replace(/^node_modules\//, ""));
  return [...imported, `@img/sharp-${target}`].map((name) => npmComponent(join(modules, name)));
}

function npmComponent(folder: string): Component {
  const { name, version, license } = readPackage(folder);
  const [file] = globSync(join(folder, "{LICENSE,LICENCE,license,COPYING}*"));
  const licenseText = file === undefined ? `${name}: ${license}\n` : readFileSync(file, "utf8");
  return { name, version, license, purl: `pkg:npm/${name}@${version}`, licenseText };
}

function readPackage(folder: string): z.output<typeof Package> {
  return Package.parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
}

/** One library that holds many; its package tells the licence of each in a table. */
function libvips({ target, modules }: ComponentPlaces): Component {
  const folder = join(modules, "@img", `sharp-libvips-${target}`);
  const { name, version, license } = readPackage(folder);
  const parts = Parts.parse(JSON.parse(readFileSync(join(folder, "versions.json"), "utf8")));
  const readme = readFileSync(join(folder, "README.md"), "utf8");
  const start = readme.indexOf("## Licensing");
  if (start < 0) throw new SetupError(`the README of ${name} tells no licences`);
  return {
    name: "libvips",
    version: parts.vips,
    license,
    purl: `pkg:npm/${name}@${version}`,
    licenseText: readme.slice(start),
    parts,
  };
}

const RULE = "=".repeat(80);

/** The text that `mlxcel licenses` prints. */
export function licensesText(components: readonly Component[]): string {
  const list = components.map(
    ({ name, version, license }) => `  ${`${name} ${version}`.padEnd(44)}${license}\n`,
  );
  const texts = components.map(
    ({ name, version, licenseText }) =>
      `\n${RULE}\n${name} ${version}\n${RULE}\n\n${licenseText.trim()}\n`,
  );
  return `This file contains:\n\n${list.join("")}${texts.join("")}`;
}

/** A bill of materials in the form of CycloneDX. */
export function billOfMaterials(components: readonly Component[]): string {
  const [own, ...others] = components;
  const entry = ({ name, version, license, purl, parts = {} }: Component) => ({
    type: "library",
    name,
    version,
    purl,
    licenses: [{ expression: license }],
    components: Object.entries(parts).map(([part, partVersion]) => ({
      type: "library",
      name: part,
      version: partVersion,
    })),
  });
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: own && { ...entry(own), type: "application" } },
    components: others.map(entry),
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}
