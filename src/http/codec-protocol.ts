/** Messages between the HTTP thread and the codec worker. */
import type { ParseContext, ParsedRequest, RenderOptions } from "../dialects/dialect.ts";
import type { DialectName } from "../dialects/table.ts";
import type { Body } from "./body.ts";
import type { FailureWire } from "../worker/failure.ts";
import type { Result } from "../worker/job.ts";

export type CodecTask =
  | {
      readonly type: "parse";
      readonly dialect: DialectName;
      readonly body: Body;
      readonly context: ParseContext;
    }
  | {
      readonly type: "render";
      readonly dialect: DialectName;
      readonly result: Result;
      readonly options: RenderOptions;
    };

export type CodecOutcome =
  | { readonly type: "parsed"; readonly request: ParsedRequest }
  | { readonly type: "rendered"; readonly body: Uint8Array<ArrayBuffer> }
  | {
      readonly type: "failed";
      readonly failure: FailureWire;
      /** For the log, when the failure is a fault of ours. */
      readonly fault?: string | undefined;
    };

export type ToCodec = { readonly id: number; readonly task: CodecTask };
export type FromCodec = { readonly id: number; readonly outcome: CodecOutcome };
