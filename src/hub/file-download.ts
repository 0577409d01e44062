/** One file of a repository, resumed where an earlier run stopped, and verified. */
import { existsSync } from "node:fs";
import type { HubClient, HubCommit } from "./client.ts";
import type { StoredFile } from "./manifest.ts";
import { completeFile, PartFile } from "./part-file.ts";
import { TransientError, withRetries } from "./retry.ts";

interface FileDownload {
  readonly client: HubClient;
  readonly commit: HubCommit;
  /** Where complete files lie by their ids, and begun ones beside them. */
  readonly directory: string;
  readonly onReceived: (file: StoredFile, bytes: number) => void;
  readonly onRemark: (text: string) => void;
  readonly signal: AbortSignal;
}

/** @throws Error one line, where the file can't be had, is wrong twice in a row, or can't be written */
export async function downloadFile(file: StoredFile, download: FileDownload): Promise<void> {
  if (existsSync(completeFile(download.directory, file))) {
    download.onReceived(file, file.sizeBytes);
    return;
  }
  if (await receiveAndVerify(file, download)) return;
  download.onRemark(`${file.path} has a wrong checksum; it was deleted and is downloaded again`);
  if (await receiveAndVerify(file, download)) return;
  throw new Error(
    `model ${download.commit.repository}: ${file.path} has a wrong checksum again and was deleted; ` +
      "something between here and the hub changes files: try another network or HF_ENDPOINT",
  );
}

/** Whether the bytes were the right ones. */
async function receiveAndVerify(file: StoredFile, download: FileDownload): Promise<boolean> {
  await using part = await PartFile.open(download.directory, file);
  const { client, onReceived, onRemark, signal } = download;
  const retries = { firstPauseMs: client.firstPauseMs, onRemark, signal };
  onReceived(file, part.received);
  let furthest = part.received;
  await withRetries(retries, async (progressed) => {
    if (part.received >= file.sizeBytes) return;
    await receive(part, download, () => {
      onReceived(file, part.received);
      if (part.received > furthest) progressed();
      furthest = Math.max(furthest, part.received);
    });
    if (part.received < file.sizeBytes) throw new TransientError(`${file.path} came cut off`);
  });
  return part.complete(download.directory);
}

async function receive(
  part: PartFile,
  { client, commit }: FileDownload,
  onChunk: () => void,
): Promise<void> {
  const { file } = part;
  const { status, chunks } = await client.content(commit, file.path, part.received);
  // a server that knows no ranges sends all of it
  if (status !== 206) await part.restart();
  for await (const chunk of chunks) {
    await part.append(chunk);
    onChunk();
    if (part.received > file.sizeBytes) return;
  }
}
