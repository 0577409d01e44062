/** What the tests of downloads share: an empty store, a hub with two repositories, and what the user is told. */
import { afterEach, beforeEach } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixture } from "../../../test/fixtures/fixtures.ts";
import { type ResolvedModel, resolveModel, type ResolveOptions } from "../resolve.ts";
import { partialDirectory } from "../store.ts";
import { type Fault, filesOf, HubServer, type Repository, type SeenRequest } from "./hub-server.ts";

export const WEIGHTS = "model.safetensors";

/** Of owner/small. */
export const weights = randomBytes(300_000);

/** With what other runtimes and people need beside the model. */
export const bert: Repository = {
  revisions: ["main", "v1"],
  files: {
    ...filesOf(fixture("bert-mean")),
    "onnx/model.onnx": "onnx",
    "openvino/openvino_model.xml": "xml",
    "pytorch_model.bin": "pickle",
    "vocab.txt": "the",
    "README.md": "# bert",
  },
};

export const small: Repository = {
  files: { "config.json": "{}", "tokenizer.json": "[]", [WEIGHTS]: weights },
};

/** Requests for the bytes of the weights. */
export function ofWeights({ server, path }: SeenRequest): boolean {
  return server === "cdn" && path === WEIGHTS;
}

class Downloads {
  store = "";
  remarks: string[] = [];
  /** Bytes that were there at each call. */
  progress: number[] = [];

  constructor(readonly hub: HubServer) {
    this.store = mkdtempSync(join(tmpdir(), "mlxcel-store-"));
  }

  options(more: Partial<ResolveOptions> = {}): ResolveOptions {
    return {
      modelsDir: this.store,
      env: { HF_ENDPOINT: this.hub.url, HOME: join(this.store, "nobody") },
      offline: false,
      firstPauseMs: 1,
      listener: {
        remark: (text) => this.remarks.push(text),
        progress: (doneBytes) => this.progress.push(doneBytes),
      },
      ...more,
    };
  }

  resolve(name: string, more?: Partial<ResolveOptions>): Promise<ResolvedModel> {
    return resolveModel(name, this.options(more));
  }

  /** Spoils the first `times` answers that `matches` chooses. */
  spoil(fault: Fault, matches: (request: SeenRequest) => boolean, times = 1): void {
    let left = times;
    this.hub.fault = (request) => (matches(request) && left-- > 0 ? fault : undefined);
  }

  storedWeights(repository: string): Buffer {
    return readFileSync(join(this.store, repository, WEIGHTS));
  }

  /** Files of a download that is not complete. */
  begun(repository: string): string[] {
    return readdirSync(partialDirectory(this.store, repository));
  }
}

/** Gives each test of a file its own. */
export function freshDownloads(): () => Downloads {
  let current: Downloads | undefined;
  beforeEach(async () => {
    current = new Downloads(await HubServer.start({ "owner/bert": bert, "owner/small": small }));
  });
  afterEach(async () => {
    await current?.hub[Symbol.asyncDispose]();
    if (current) rmSync(current.store, { recursive: true });
  });
  return () => {
    if (!current) throw new Error("only inside a test");
    return current;
  };
}
