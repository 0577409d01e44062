/** A response before the server stamps the headers that every response carries. */
export interface Answer {
  readonly status: number;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  readonly contentType?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export const JSON_TYPE = "application/json";

export function jsonAnswer(
  value: unknown,
  status = 200,
  headers?: Readonly<Record<string, string>>,
): Answer {
  return { status, body: JSON.stringify(value), contentType: JSON_TYPE, headers };
}
