/** Reads and checks what the server answers. */
import { expect } from "bun:test";
import { z } from "zod";
import type { Server } from "../server.ts";

const Usage = z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() });
const vector = z.array(z.number());

function envelope<T extends z.ZodType>(embedding: T) {
  return z.strictObject({
    object: z.literal("list"),
    data: z.array(z.strictObject({ object: z.literal("embedding"), index: z.number(), embedding })),
    model: z.string(),
    usage: Usage,
  });
}
const FloatEnvelope = envelope(vector);
const Base64Envelope = envelope(z.base64());
const Native = z.array(z.strictObject({ index: z.number(), embedding: z.array(vector) }));
const NativeBase64 = z.array(z.strictObject({ index: z.number(), embedding: z.base64() }));
const ErrorEnvelope = z.strictObject({
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string(),
    code: z.string().nullable(),
    param: z.string().nullable(),
  }),
});

interface Embedded {
  readonly vectors: readonly (readonly number[])[];
  readonly model: string;
  readonly tokens: number;
  /** Value of the header that counts cut items. */
  readonly truncated: string | null;
}

/** Posts to `/v1/embeddings` and insists on a complete, ordered 200. */
export async function embed(server: Server, body: unknown): Promise<Embedded> {
  const response = await server.post("/v1/embeddings", body);
  const answer = FloatEnvelope.parse(await okJson(response));
  expect(answer.data.map((entry) => entry.index)).toEqual(answer.data.map((_, i) => i));
  expect(answer.usage.total_tokens).toBe(answer.usage.prompt_tokens);
  return {
    vectors: answer.data.map((entry) => entry.embedding),
    model: answer.model,
    tokens: answer.usage.prompt_tokens,
    truncated: response.headers.get("x-mlxcel-truncated"),
  };
}

/** The one vector of a request with one item. */
export async function embedOne(server: Server, input: unknown, options = {}): Promise<number[]> {
  const { vectors } = await embed(server, { input, ...options });
  expect(vectors).toHaveLength(1);
  return [...(vectors[0] ?? [])];
}

/** Posts to a llama-server route and insists on a complete, ordered 200 with one vector per item. */
export async function embedNative(
  server: Server,
  body: unknown,
  path = "/embedding",
): Promise<number[][]> {
  const entries = Native.parse(await okJson(await server.post(path, body)));
  expect(entries.map((entry) => entry.index)).toEqual(entries.map((_, i) => i));
  return entries.map(({ embedding }) => {
    expect(embedding).toHaveLength(1);
    return embedding[0] ?? [];
  });
}

/** Base64 answers of `/v1/embeddings` or of a native route, decoded as little-endian f32. */
export async function embedBase64(
  server: Server,
  body: Record<string, unknown>,
  path = "/v1/embeddings",
): Promise<number[][]> {
  const json = await okJson(await server.post(path, { ...body, encoding_format: "base64" }));
  const entries =
    path === "/v1/embeddings" ? Base64Envelope.parse(json).data : NativeBase64.parse(json);
  return entries.map(({ embedding }) => littleEndianFloats(embedding));
}

export function littleEndianFloats(base64: string): number[] {
  const bytes = Buffer.from(base64, "base64");
  expect(bytes.toString("base64")).toBe(base64);
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

export async function okJson(response: Response): Promise<unknown> {
  const text = await response.text();
  expect({ status: response.status, text: response.ok ? "" : text }).toEqual({
    status: 200,
    text: "",
  });
  expect(response.headers.get("content-type")).toStartWith("application/json");
  const json: unknown = JSON.parse(text);
  return json;
}

interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly message: string;
  readonly headers: Headers;
}

/** Insists on an error in the one envelope. */
export async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text();
  expect(response.status, text.slice(0, 300)).toBeGreaterThanOrEqual(400);
  expect(response.headers.get("content-type")).toStartWith("application/json");
  const { error } = ErrorEnvelope.parse(JSON.parse(text));
  return { status: response.status, headers: response.headers, ...error };
}

/** Posts and insists on a 400 of the request's own fault. */
export async function badRequest(
  server: Server,
  body: unknown,
  path = "/v1/embeddings",
): Promise<Refusal> {
  const refusal = await refusalOf(await server.post(path, body));
  expect(refusal, refusal.message).toMatchObject({ status: 400, type: "invalid_request_error" });
  return refusal;
}

/** The server still does its work. */
export async function expectAlive(server: Server): Promise<void> {
  expect((await embed(server, { input: "ok" })).vectors).toHaveLength(1);
}

const TOLERANCE = 1e-5;

/** Equal within the accuracy of f32: 1e-5 x max(1, largest component). */
export function expectVector(actual: readonly number[], reference: readonly number[]): void {
  expect(actual).toHaveLength(reference.length);
  const largest = Math.max(1, ...reference.map(Math.abs));
  expect(maxDifference(actual, reference)).toBeLessThanOrEqual(TOLERANCE * largest);
}

export function expectVectors(
  actual: readonly (readonly number[])[],
  reference: readonly (readonly number[])[],
): void {
  expect(actual).toHaveLength(reference.length);
  actual.forEach((row, i) => expectVector(row, reference[i] ?? []));
}

/** Different beyond any rounding. */
export function expectDifferent(a: readonly number[], b: readonly number[]): void {
  expect(maxDifference(a, b)).toBeGreaterThan(1e-3);
}

function maxDifference(a: readonly number[], b: readonly number[]): number {
  return Math.max(...a.map((value, i) => Math.abs(value - (b[i] ?? Number.NaN))));
}

export function norm(vector: readonly number[], n = 2): number {
  return vector.reduce((sum, value) => sum + Math.abs(value) ** n, 0) ** (1 / n);
}

export function unit(vector: readonly number[], n = 2): number[] {
  const length = norm(vector, n);
  return vector.map((value) => value / length);
}
