import { copyFileSync, globSync, mkdirSync } from "node:fs";
import { join } from "node:path";

/** Copies the licence of each part, an unpacked wheel or source tree, to `licenses/<part>.txt` in a native set. */
export function copyLicenses(parts: Readonly<Record<string, string>>, nativeSet: string): void {
  mkdirSync(join(nativeSet, "licenses"));
  for (const [part, folder] of Object.entries(parts)) {
    const [license] = [
      ...globSync(join(folder, "*.dist-info/licenses/LICENSE*")),
      ...globSync(join(folder, "LICENSE*")),
    ];
    if (license !== undefined) copyFileSync(license, join(nativeSet, "licenses", `${part}.txt`));
  }
}
