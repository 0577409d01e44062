import {
  renderBuffers,
  type ParseContext,
  type ParsedRequest,
  type RenderOptions,
} from "../dialects/dialect.ts";
import type { DialectName } from "../dialects/table.ts";
import type { Logger } from "../serving/log.ts";
import { Failure } from "../worker/failure.ts";
import { resultBuffers, type Result } from "../worker/job.ts";
import type { Body } from "./body.ts";
import type { CodecOutcome, CodecTask, FromCodec, ToCodec } from "./codec-protocol.ts";

type Settle = PromiseWithResolvers<CodecOutcome>;

/** The codec worker as the HTTP thread sees it. Started when first needed, started anew if it dies. */
export class Codec {
  readonly #url: URL;
  readonly #logger: Logger;
  readonly #pending = new Map<number, Settle>();
  #worker: Worker | undefined;
  #lastId = 0;

  constructor(url: URL, logger: Logger) {
    this.#url = url;
    this.#logger = logger;
  }

  /** Takes the body's buffers away from the caller. Items come back packed. */
  async parse(dialect: DialectName, body: Body, context: ParseContext): Promise<ParsedRequest> {
    const buffers = new Set(body.chunks.map(({ buffer }) => buffer));
    const outcome = await this.#run({ type: "parse", dialect, body, context }, [...buffers]);
    if (outcome.type === "parsed") return outcome.request;
    throw unexpected(outcome);
  }

  /** Takes the buffers of the result and of the options away from the caller. */
  async render(
    dialect: DialectName,
    result: Result,
    options: RenderOptions,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const task: CodecTask = { type: "render", dialect, result, options };
    const buffers = [...resultBuffers(result), ...renderBuffers(options)];
    const outcome = await this.#run(task, buffers);
    if (outcome.type === "rendered") return outcome.body;
    throw unexpected(outcome);
  }

  stop(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #run(task: CodecTask, transfer: ArrayBuffer[]): Promise<CodecOutcome> {
    const worker = (this.#worker ??= this.#start());
    const id = ++this.#lastId;
    const settle: Settle = Promise.withResolvers();
    this.#pending.set(id, settle);
    worker.postMessage({ id, task } satisfies ToCodec, transfer);
    return settle.promise;
  }

  #start(): Worker {
    const worker = new Worker(this.#url);
    worker.onmessage = ({ data: { id, outcome } }: MessageEvent<FromCodec>) => {
      if (outcome.type === "failed" && outcome.fault) {
        this.#logger.error("codec worker failed", { fault: outcome.fault });
      }
      this.#pending.get(id)?.resolve(outcome);
      this.#pending.delete(id);
    };
    worker.onerror = ({ message }) => this.#onDeath(worker, message);
    worker.addEventListener("close", () => this.#onDeath(worker, "closed"));
    return worker;
  }

  #onDeath(worker: Worker, why: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#logger.error("codec worker died; the next big request starts another", { why });
    for (const { reject } of this.#pending.values()) {
      reject(new Failure("internal", "the codec worker died; send the request again"));
    }
    this.#pending.clear();
  }
}

function unexpected(outcome: CodecOutcome): Failure {
  return outcome.type === "failed"
    ? Failure.fromWire(outcome.failure)
    : new Failure("internal", `the codec worker answered "${outcome.type}"`);
}
