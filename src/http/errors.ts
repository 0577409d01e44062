import { Failure, type FailureReason } from "../worker/failure.ts";
import { jsonAnswer, type Answer } from "./answer.ts";

interface Wire {
  readonly status: number;
  readonly type: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const RETRY_AFTER = { "retry-after": "1" };

const WIRE: Readonly<Record<FailureReason, Wire>> = {
  invalid: { status: 400, type: "invalid_request_error" },
  model_not_found: { status: 400, type: "invalid_request_error", code: "model_not_found" },
  unauthorized: {
    status: 401,
    type: "authentication_error",
    code: "invalid_api_key",
    headers: { "www-authenticate": "Bearer" },
  },
  not_found: { status: 404, type: "not_found_error" },
  method_not_allowed: { status: 405, type: "invalid_request_error" },
  too_large: { status: 413, type: "invalid_request_error" },
  // nobody reads it; the status is for the log
  cancelled: { status: 499, type: "invalid_request_error" },
  internal: { status: 500, type: "server_error" },
  not_loaded: { status: 501, type: "not_implemented" },
  busy: { status: 503, type: "server_busy", headers: RETRY_AFTER },
  unavailable: { status: 503, type: "unavailable_error", headers: RETRY_AFTER },
  timeout: { status: 504, type: "server_timeout" },
};

/** The one error envelope: `{"error":{message, type, code, param}}` with the reason's status and headers. */
export function failureAnswer(failure: Failure): Answer {
  const { status, type, code = null, headers } = WIRE[failure.reason];
  const { message, param } = failure;
  return jsonAnswer({ error: { message, type, code, param } }, status, headers);
}

/** What the caller gets for anything that was thrown. Only a Failure's message was written for callers. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  return new Failure("internal", "internal error; the server's log has the details");
}
