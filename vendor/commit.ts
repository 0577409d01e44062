import { version } from "../package.json";
import { CommandError, run } from "./command.ts";

const LENGTH = 9;

/**
 * The commit that the sources in `folder` are at, `.modified` behind it when they differ from it. undefined for a
 * release, which is a clean checkout of the tag `v<version>`, and where there is no repository.
 */
export async function commitOf(folder: string): Promise<string | undefined> {
  const git = (...args: string[]) => run(["git", ...args], { log: "git", cwd: folder });
  try {
    const [commit = ""] = await git("rev-parse", "HEAD");
    const changes = await git("status", "--porcelain");
    const tags = await git("tag", "--points-at", "HEAD");
    if (changes.length === 0 && tags.includes(`v${version}`)) return undefined;
    return `${commit.slice(0, LENGTH)}${changes.length > 0 ? ".modified" : ""}`;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}
