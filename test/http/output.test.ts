import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { CheckpointCopy, expected, fixture, floatTensor, referenceCase } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import {
  badRequest,
  embed,
  embedBase64,
  embedNative,
  embedOne,
  expectDifferent,
  expectVector,
  expectVectors,
  norm,
  unit,
} from "./answers.ts";

setDefaultTimeout(60_000);

const reference = referenceCase("bert-mean", "medium");
const DIM = expected("bert-mean").dim;
const raw = reference.unnormalized ?? [];
const input = reference.input;

let server: Server;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture("bert-mean")]);
});
afterAll(() => server?.stop());

describe("encoding", () => {
  test.each(["/v1/embeddings", "/embedding", "/embeddings"])(
    "base64 on %s is the same f32 as the float answer, bit by bit",
    async (path) => {
      const body = { input: ["vector", "search", "a much longer text"], embd_normalize: -1 };
      const floats =
        path === "/v1/embeddings"
          ? (await embed(server, { ...body, encoding_format: "float" })).vectors
          : await embedNative(server, { ...body, encoding_format: "float" }, path);
      const packed = await embedBase64(server, body, path);
      expect(packed.map((vector) => vector.length)).toEqual([DIM, DIM, DIM]);
      expect(floats.map((vector) => vector.map(Math.fround))).toEqual(packed);
    },
  );

  test("numbers read back to the very same f32 at every magnitude", async () => {
    for (const embd_normalize of [-1, 0, 1, 2, 7]) {
      const body = { input, embd_normalize };
      const [packed] = await embedBase64(server, body);
      const [floats] = (await embed(server, body)).vectors;
      expect(floats?.map(Math.fround)).toEqual(packed ?? []);
    }
  });
});

describe("dimensions", () => {
  test.each([1, 8, DIM])("%d: cut, then of unit length again", async (dimensions) => {
    const vector = await embedOne(server, input, { dimensions });
    expect(vector).toHaveLength(dimensions);
    expect(Math.abs(norm(vector) - 1)).toBeLessThan(1e-5);
    expectVector(vector, unit(raw.slice(0, dimensions)));
  });

  test("without normalisation the cut is the raw beginning", async () => {
    const whole = await embedOne(server, input, { embd_normalize: -1 });
    const cut = await embedOne(server, input, { embd_normalize: -1, dimensions: 8 });
    expect(cut).toEqual(whole.slice(0, 8));
    expectVector(whole, raw);
  });

  test("native routes and base64 cut as well", async () => {
    const cut = unit(raw.slice(0, 8));
    expectVectors(await embedNative(server, { input, dimensions: 8 }), [cut]);
    expectVectors(await embedBase64(server, { input, dimensions: 8 }), [cut]);
  });
});

describe("normalisation", () => {
  const largest = Math.max(...raw.map(Math.abs));
  const modes: [number, number[]][] = [
    [-1, raw],
    [0, raw.map((value) => (value / largest) * 32760)],
    [1, unit(raw, 1)],
    [2, unit(raw)],
    [3, unit(raw, 3)],
    [6, unit(raw, 6)],
  ];

  test.each(modes)(
    "embd_normalize %d on every route, and none is carried over",
    async (mode, vector) => {
      const body = { input, embd_normalize: mode };
      expectVector((await embed(server, body)).vectors[0] ?? [], vector);
      expectVectors(await embedNative(server, body, "/embedding"), [vector]);
      expectVectors(await embedNative(server, body, "/embeddings"), [vector]);
      expectVector(await embedOne(server, input), reference.embedding);
      expectVectors(await embedNative(server, { input }), [reference.embedding]);
    },
  );

  test("a checkpoint without a Normalize module gives its raw vectors", async () => {
    await using max = await startServer(["--embedding-model", fixture("bert-max")]);
    const { input: text, embedding } = referenceCase("bert-max", "medium");
    expectVector(await embedOne(max, text), embedding);
    expectVector(await embedOne(max, text, { embd_normalize: 2 }), unit(embedding));
    expectVector(await embedOne(max, text, { dimensions: 8 }), embedding.slice(0, 8));
  });

  test("--embd-normalize beats the checkpoint, the request beats the flag, null is absent", async () => {
    await using flagged = await startServer([
      ...["--embedding-model", fixture("bert-mean")],
      ...["--embd-normalize", "1"],
    ]);
    expectVector(await embedOne(flagged, input), unit(raw, 1));
    expectVectors(await embedNative(flagged, { input }), [unit(raw, 1)]);
    expectVector(await embedOne(flagged, input, { embd_normalize: null }), unit(raw, 1));
    expectVector(await embedOne(flagged, input, { embd_normalize: -1 }), raw);
    expectVector(await embedOne(flagged, input, { dimensions: 8 }), unit(raw.slice(0, 8), 1));
  });

  test("a zero vector stays zero in every mode", async () => {
    const zero = new CheckpointCopy("bert-mean").tensors((table) => {
      for (const name of ["weight", "bias"]) {
        const zeros = floatTensor([DIM], new Float32Array(DIM));
        table.set(`encoder.layer.1.output.LayerNorm.${name}`, zeros);
      }
    });
    await using zeroServer = await startServer(["--embedding-model", zero.directory]);
    for (const embd_normalize of [undefined, -1, 0, 1, 2, 3]) {
      const vector = await embedOne(zeroServer, "vector", { embd_normalize });
      expect(vector.map(Math.abs)).toEqual(Array(DIM).fill(0));
    }
  });
});

describe("a Dense module after pooling", () => {
  const dense = referenceCase("bert-cls-dense", "short");

  test("is applied, and its width bounds dimensions", async () => {
    await using projected = await startServer(["--embedding-model", fixture("bert-cls-dense")]);
    const width = expected("bert-cls-dense").dim;
    const vector = await embedOne(projected, dense.input);
    expectVector(vector, dense.embedding);
    expect(await embedOne(projected, dense.input, { dimensions: width })).toEqual(vector);
    const tooMany = { input: dense.input, dimensions: width + 1 };
    expect((await badRequest(projected, tooMany)).message).toContain(String(width));
  });

  test("may narrow the vector: L2(tanh(W pooled + b))", async () => {
    const width = 24;
    const hidden = expected("bert-cls-dense").cases[0]?.token_rows?.[0] ?? [];
    let projection: number[] = [];
    const copy = new CheckpointCopy("bert-cls-dense")
      .set("2_Dense/config.json", { out_features: width })
      .tensors((table) => {
        const weight = Float32Array.from(
          { length: width * hidden.length },
          (_, i) => Math.sin(i) / 4,
        );
        const bias = Float32Array.from({ length: width }, (_, i) => Math.cos(i) / 2);
        projection = Array.from(bias, (b, row) =>
          Math.tanh(
            hidden.reduce((sum, h, i) => sum + h * (weight[row * hidden.length + i] ?? 0), b),
          ),
        );
        table.set("linear.weight", floatTensor([width, hidden.length], weight));
        table.set("linear.bias", floatTensor([width], bias));
      }, "2_Dense/model.safetensors");
    await using narrow = await startServer(["--embedding-model", copy.directory]);
    expectVector(await embedOne(narrow, dense.input), unit(projection));
    await badRequest(narrow, { input: dense.input, dimensions: width + 1 });
  });
});

test("different texts have different vectors", async () => {
  expectDifferent(await embedOne(server, "vector"), await embedOne(server, "search"));
});
