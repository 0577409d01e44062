/** From the name of a repository to its files in the local store. */
import { existsSync, mkdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Environment } from "../native/environment.ts";
import { codeOf } from "../native/thrown.ts";
import { byteText } from "./byte-text.ts";
import { HubClient, type HubCommit } from "./client.ts";
import { exclusively } from "./exclusive.ts";
import { downloadFile } from "./file-download.ts";
import { install, recoverPrevious } from "./install.ts";
import { type Manifest, readManifest, type StoredFile, writeManifest } from "./manifest.ts";
import { isSafePath, type ModelName } from "./model-name.ts";
import { bytesPresent, completeFile } from "./part-file.ts";
import { checkpointFiles, ggufFile, moduleFolders } from "./selection.ts";
import { lockFile, partialDirectory } from "./store.ts";

/** Is told how a download goes. */
export interface DownloadListener {
  remark(text: string): void;
  /** Called often; the first time with what an earlier run has left. */
  progress(doneBytes: number, totalBytes: number): void;
}

export interface PullOptions {
  readonly store: string;
  readonly env: Environment;
  /** A branch, a tag or a commit; default: main. */
  readonly revision?: string | undefined;
  /** For repositories that are private or gated. */
  readonly token?: string | undefined;
  readonly listener: DownloadListener;
  readonly signal?: AbortSignal | undefined;
  /** Pause before the second attempt of a request. */
  readonly firstPauseMs?: number | undefined;
}

const PARALLEL_FILES = 4;

/**
 * Brings a model into the local store, or up to date there. One process at a time does this for a repository; others
 * wait for it. `isThere` is asked once it is this one's turn: whether nothing is left to do.
 *
 * @throws Error one line that says what to do; what has arrived is kept for the next run
 */
export async function pull(
  name: ModelName,
  options: PullOptions,
  isThere: () => boolean = () => false,
): Promise<void> {
  const { store, listener } = options;
  const lock = lockFile(store, name.repository);
  const work = async () => {
    if (!isThere()) await new Pull(name, options).run();
  };
  const onWait = () =>
    listener.remark(`another process is downloading ${name.repository}; waiting for it`);
  try {
    await exclusively(lock, work, onWait);
  } catch (error) {
    throw explained(error, name.repository, store);
  }
}

const UNWRITABLE = new Set(["EACCES", "EPERM", "EROFS", "ENOENT", "SQLITE_CANTOPEN"]);

/** A full disk, a store that may not be written to, and impossible files, in words. */
function explained(error: unknown, repository: string, store: string): unknown {
  const code = codeOf(error);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new Error(
      `the disk of ${store} is full: free some space, or choose another place with --models-dir; what has arrived is kept`,
    );
  }
  if (code === "EEXIST" || code === "ENOTDIR" || code === "EISDIR" || code === "ENAMETOOLONG") {
    return new Error(
      `model ${repository}: the store cannot hold files named as the hub lists them (${code})`,
    );
  }
  if (UNWRITABLE.has(code)) {
    return new Error(
      `the store ${store} may not be written to (${code}): choose another place with --models-dir`,
    );
  }
  return error;
}

class Pull {
  readonly #name: ModelName;
  readonly #options: PullOptions;
  readonly #client: HubClient;
  readonly #directory: string;
  readonly #partial: string;
  /** Ends all downloads when one fails. */
  readonly #failed = new AbortController();
  readonly #signal: AbortSignal;
  /** An earlier run was stopped. */
  #goesOn = false;

  constructor(name: ModelName, options: PullOptions) {
    this.#name = name;
    this.#options = options;
    this.#directory = join(options.store, name.repository);
    this.#partial = partialDirectory(options.store, name.repository);
    const signals = options.signal ? [options.signal] : [];
    this.#signal = AbortSignal.any([this.#failed.signal, ...signals]);
    this.#client = new HubClient({
      endpoint: options.env["HF_ENDPOINT"],
      token: options.token,
      onRemark: (text) => options.listener.remark(text),
      signal: this.#signal,
      firstPauseMs: options.firstPauseMs,
    });
  }

  async run(): Promise<void> {
    const { repository } = this.#name;
    const { revision = "main", listener } = this.#options;
    recoverPrevious(this.#partial, this.#directory);
    const stored = this.#storedManifest();
    const commit = await this.#client.commitOf({ repository, revision });
    const listed = await this.#client.files(commit);
    this.#goesOn = mkdirSync(this.#partial, { recursive: true }) === undefined;
    const chosen = await this.#choose(commit, listed);
    const files = withStored(chosen, listed, stored);
    const isNew = (file: StoredFile) => !this.#isStored(file, stored);
    const missing = files.filter(isNew);
    const manifest = this.#manifest(commit, files);
    if (missing.length === 0 && stored?.commit === commit.commit) {
      // perhaps by another name of the revision
      writeManifest(this.#directory, { ...manifest, downloadedAt: stored.downloadedAt });
      rmSync(this.#partial, { recursive: true });
      listener.remark(`${repository} is up to date (commit ${commit.commit.slice(0, 7)})`);
      return;
    }
    if (missing.length > 0) await this.#download(commit, missing);
    install({
      manifest,
      directory: this.#directory,
      partial: this.#partial,
      sourceOf: (file) =>
        isNew(file) ? completeFile(this.#partial, file) : join(this.#directory, file.path),
    });
    const size = byteText(sum(files.map(({ sizeBytes }) => sizeBytes)));
    listener.remark(`${repository} is complete: ${size} in ${this.#directory}`);
  }

  /** Of an earlier download; undefined where nothing is yet. */
  #storedManifest(): Manifest | undefined {
    if (!existsSync(this.#directory)) return undefined;
    const manifest = readManifest(this.#directory);
    if (manifest) return manifest;
    throw new Error(
      `model ${this.#name.text}: ${this.#directory} was not downloaded by mlxcel and is left as it is; ` +
        `to download it, run mlxcel rm ${this.#name.repository} first`,
    );
  }

  /** A path that is written to is checked here, whatever chose it. */
  async #choose(commit: HubCommit, listed: readonly StoredFile[]): Promise<StoredFile[]> {
    const { repository, gguf } = this.#name;
    const file = ggufFile(listed, gguf, repository);
    if (file !== undefined) {
      if (gguf === undefined) this.#options.listener.remark(`${repository}: taking ${file.path}`);
      return [file];
    }
    const modules = listed.find(({ path }) => path === "modules.json");
    const folders = modules ? moduleFolders(await this.#text(commit, modules), repository) : [];
    const chosen = checkpointFiles(listed, folders, repository);
    const odd = chosen.find(({ path }) => !isSafePath(path));
    if (odd === undefined) return chosen;
    throw new Error(`model ${repository}: the hub lists the path ${JSON.stringify(odd.path)}`);
  }

  async #text(commit: HubCommit, file: StoredFile): Promise<string> {
    await downloadFile(file, { ...this.#fileDownload(commit), onReceived: () => {} });
    return Bun.file(completeFile(this.#partial, file)).text();
  }

  #fileDownload(commit: HubCommit) {
    const onRemark = (text: string) => this.#options.listener.remark(text);
    return {
      client: this.#client,
      commit,
      directory: this.#partial,
      onRemark,
      signal: this.#signal,
    };
  }

  #isStored({ path, oid, sizeBytes }: StoredFile, stored: Manifest | undefined): boolean {
    const known = stored?.files.find((file) => file.path === path);
    const found = statSync(join(this.#directory, path), { throwIfNoEntry: false });
    return known?.oid === oid && found?.size === sizeBytes;
  }

  async #download(commit: HubCommit, missing: readonly StoredFile[]): Promise<void> {
    const { listener } = this.#options;
    // equal files, such as two empty ones, arrive once
    const files = [...new Map(missing.map((file) => [file.oid, file])).values()];
    const total = sum(files.map(({ sizeBytes }) => sizeBytes));
    const received = new Map(
      files.map((file) => [file.oid, bytesPresent(this.#partial, file)] as const),
    );
    const before = sum(received.values());
    this.#requireSpace(total - before);
    const resumed = this.#goesOn ? `, ${byteText(before)} of it here already` : "";
    const { repository } = this.#name;
    const { host } = new URL(this.#client.endpoint);
    const count = files.length === 1 ? "1 file" : `${files.length} files`;
    listener.remark(
      `downloading ${repository} from ${host} (${count}, ${byteText(total)}${resumed})`,
    );
    listener.progress(before, total);
    const onReceived = ({ oid }: StoredFile, bytes: number) => {
      received.set(oid, bytes);
      listener.progress(sum(received.values()), total);
    };
    await this.#inParallel(files, (file) =>
      downloadFile(file, { ...this.#fileDownload(commit), onReceived }),
    );
  }

  async #inParallel(
    files: readonly StoredFile[],
    run: (file: StoredFile) => Promise<void>,
  ): Promise<void> {
    const queue = [...files];
    const worker = async () => {
      for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
        try {
          await run(file);
        } catch (error) {
          // the first failure is the reason; the others only end because of it
          this.#failed.abort(error);
          throw this.#signal.reason;
        }
      }
    };
    const settled = await Promise.allSettled(Array.from({ length: PARALLEL_FILES }, worker));
    const failure = settled.find((result) => result.status === "rejected");
    if (failure) throw failure.reason;
  }

  #requireSpace(bytes: number): void {
    const { bavail, bsize } = statfsSync(this.#partial);
    const free = bavail * bsize;
    if (bytes <= free) return;
    throw new Error(
      `model ${this.#name.repository} needs ${byteText(bytes)} more, but only ${byteText(free)} are free in ` +
        `${dirname(this.#partial)}: free some space, or choose another place with --models-dir`,
    );
  }

  #manifest({ repository, revision, commit }: HubCommit, files: readonly StoredFile[]): Manifest {
    const { origin } = new URL(this.#client.endpoint);
    const downloadedAt = new Date().toISOString();
    return { repository, endpoint: origin, revision, commit, downloadedAt, files: [...files] };
  }
}

/** What was chosen, and what earlier downloads have chosen as far as the commit still has it. */
function withStored(
  chosen: readonly StoredFile[],
  listed: readonly StoredFile[],
  stored: Manifest | undefined,
): StoredFile[] {
  const kept = listed.filter(({ path }) => stored?.files.some((file) => file.path === path));
  return [...new Map([...kept, ...chosen].map((file) => [file.path, file])).values()];
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const value of numbers) total += value;
  return total;
}
