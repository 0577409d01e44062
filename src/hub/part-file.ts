/** A file that is being downloaded: its bytes so far, and their checksum. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream, existsSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { StoredFile } from "./manifest.ts";

/** Complete files are called by their id alone, so that they serve every commit that has them. */
export function completeFile(directory: string, { oid }: StoredFile): string {
  return join(directory, oid);
}

/** How many bytes of a file lie in a directory of downloads. */
export function bytesPresent(directory: string, file: StoredFile): number {
  const complete = completeFile(directory, file);
  const path = existsSync(complete) ? complete : `${complete}.part`;
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return Math.min(size, file.sizeBytes);
}

export class PartFile implements AsyncDisposable {
  #hash: Hash;
  readonly #path: string;
  readonly #handle: FileHandle;
  #receivedBytes: number;

  private constructor(
    readonly file: StoredFile,
    path: string,
    handle: FileHandle,
    receivedBytes: number,
  ) {
    this.#path = path;
    this.#handle = handle;
    this.#receivedBytes = receivedBytes;
    this.#hash = newHash(file);
  }

  /** Opens what an earlier run has left, or an empty file. */
  static async open(directory: string, file: StoredFile): Promise<PartFile> {
    const path = `${completeFile(directory, file)}.part`;
    const handle = await open(path, "a");
    const part = new PartFile(file, path, handle, 0);
    try {
      for await (const chunk of createReadStream(path)) {
        part.#hash.update(chunk);
        part.#receivedBytes += chunk.length;
      }
      return part;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get received(): number {
    return this.#receivedBytes;
  }

  async append(chunk: Uint8Array): Promise<void> {
    await this.#handle.appendFile(chunk);
    this.#hash.update(chunk);
    this.#receivedBytes += chunk.length;
  }

  async restart(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = newHash(this.file);
    this.#receivedBytes = 0;
  }

  /** Gives the file its final name when its bytes are the right ones; else deletes it and returns false. */
  async complete(directory: string): Promise<boolean> {
    const { sizeBytes, oid } = this.file;
    if (this.#receivedBytes === sizeBytes && this.#hash.digest("hex") === oid) {
      await this.#handle.sync();
      await rename(this.#path, completeFile(directory, this.file));
      return true;
    }
    await rm(this.#path);
    return false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

const SHA256_DIGITS = 64;

/** Large files are named by the SHA-256 of their content, others by git: SHA-1 of a header and the content. */
function newHash({ oid, sizeBytes }: StoredFile): Hash {
  if (oid.length === SHA256_DIGITS) return createHash("sha256");
  return createHash("sha1").update(`blob ${sizeBytes}\0`);
}
