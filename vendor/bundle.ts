/** One executable: a Bun runtime, the bundled program with its workers, and the native set. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BunPlugin } from "bun";
import * as entries from "../src/entries.ts";
import type { EmbeddedFile, Executable } from "../src/native/executable.ts";
import { setName } from "./payload.ts";
import { vendorFolder } from "./pinned.ts";
import { SetupError } from "./setup-error.ts";
import type { Target } from "./targets.ts";

const source = join(vendorFolder, "../src");
/** The program and its workers. */
const ENTRIES = [
  join(source, "main.ts"),
  ...Object.values(entries).flatMap((entry) => (entry instanceof URL ? fileURLToPath(entry) : [])),
];

interface Bundle {
  readonly target: Target;
  /** The Bun that the executable starts with, made for its target. */
  readonly runtime: string;
  /** What `mlxcel --version` tells besides the version. */
  readonly commit: string | undefined;
  readonly files: readonly EmbeddedFile[];
  /** What `mlxcel licenses` prints. */
  readonly licenses: string;
  /** Where the executable shall be. */
  readonly out: string;
}

/** Writes an executable; the same inputs give the same bytes, whatever its name and wherever it is built. */
export async function writeExecutable(bundle: Bundle): Promise<void> {
  mkdirSync(dirname(bundle.out), { recursive: true });
  // The name of the file becomes a part of it, so it is always the same at first.
  const folder = mkdtempSync(join(dirname(bundle.out), "mlxcel.tmp."));
  const outfile = join(folder, "mlxcel");
  const licensesFile = join(folder, "licenses.zst");
  try {
    await writeFile(licensesFile, Bun.zstdCompressSync(bundle.licenses));
    const { success, logs } = await Bun.build({
      entrypoints: ENTRIES,
      root: source,
      target: "bun",
      // No bytecode: what one system has made crashed on others before, and a Mac is not here to try.
      minify: { whitespace: true, syntax: true },
      naming: { asset: "[name].[ext]" },
      // its errors are worth more than that of the call
      throw: false,
      plugins: [embedExecutable(bundle, licensesFile), loadSharpFromSet(bundle.files)],
      compile: {
        target: `bun-${bundle.target}`,
        executablePath: bundle.runtime,
        outfile,
        // Nothing in the folder that the user stands in changes what the program does.
        autoloadDotenv: false,
        autoloadBunfig: false,
        autoloadTsconfig: false,
        autoloadPackageJson: false,
      },
    });
    if (!success) throw new SetupError(`the program cannot be bundled: ${logs.join("; ")}`);
    await rename(outfile, bundle.out);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Puts the native set, the licences and the commit in the place of src/native/executable.ts. */
function embedExecutable({ files, commit }: Bundle, licensesFile: string): BunPlugin {
  return {
    name: "embedded native set",
    setup(build) {
      build.onLoad({ filter: /\/src\/native\/executable\.ts$/ }, () => {
        const imports = [...files.map(({ path }) => path), licensesFile].map(
          (path, i) => `import file${i} from ${JSON.stringify(path)} with { type: "file" };\n`,
        );
        const nativeSet: Omit<Executable, "files" | "licenses"> = {
          commit,
          nativeSet: setName(files),
        };
        const list = files.map(
          (file, i) => `{ ...${JSON.stringify({ ...file, path: "" })}, path: file${i} }`,
        );
        const contents = `${imports.join("")}export const executable = { ...${JSON.stringify(nativeSet)}, files: [${list.join(", ")}], licenses: file${files.length} };`;
        return { contents, loader: "js" };
      });
    },
  };
}

/** sharp looks for its addon in node_modules; here it comes out of the native set. */
function loadSharpFromSet(files: readonly EmbeddedFile[]): BunPlugin {
  const addon = files.find(({ name }) => name.endsWith(".node"));
  if (addon === undefined) throw new SetupError("the native set holds no addon of sharp");
  return {
    name: "sharp from the native set",
    setup(build) {
      build.onLoad({ filter: /\/node_modules\/sharp\/dist\/sharp\.[cm]js$/ }, () => ({
        contents: `
          import { nativeFolder } from ${JSON.stringify(join(source, "native/library.ts"))};
          const addon = { exports: {} };
          process.dlopen(addon, nativeFolder(process.env) + ${JSON.stringify(`/${addon.name}`)});
          export default addon.exports;`,
        loader: "js",
      }));
    },
  };
}
