/** Why a request got no result. `http/errors.ts` maps each reason to a status and an error type. */
export type FailureReason =
  /** Something is wrong with the request. */
  | "invalid"
  | "model_not_found"
  | "unauthorized"
  | "not_found"
  | "method_not_allowed"
  | "too_large"
  /** The kind of model asked for is not loaded. */
  | "not_loaded"
  /** The queue is full: nothing of the request was accepted. */
  | "busy"
  /** Still loading, or shutting down. */
  | "unavailable"
  | "timeout"
  /** The caller went away; nobody reads the answer. */
  | "cancelled"
  /** Ours: inference failed, the worker died, the result was not finite. */
  | "internal";

/**
 * The one error that crosses layers. `message` is written for the person who sent the request: it names the
 * field and the next step. `param` is the field with its index (`input[3]`).
 */
export class Failure extends Error {
  override readonly name = "Failure";
  constructor(
    readonly reason: FailureReason,
    message: string,
    readonly param: string | null = null,
  ) {
    super(message);
  }

  /** A plain object that survives structured cloning between threads. */
  toWire(): FailureWire {
    return { reason: this.reason, message: this.message, param: this.param };
  }

  static fromWire(wire: FailureWire): Failure {
    return new Failure(wire.reason, wire.message, wire.param);
  }
}

export interface FailureWire {
  readonly reason: FailureReason;
  readonly message: string;
  readonly param: string | null;
}
