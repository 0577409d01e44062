/** How a type of tensor is laid out: blocks of values, one after the other along the rows. */
export interface BlockType {
  readonly name: string;
  readonly blockValues: number;
  readonly blockBytes: number;
}

const type = (name: string, blockValues: number, blockBytes: number): BlockType => ({
  name,
  blockValues,
  blockBytes,
});

/** By the number that stands for them in a file; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. */
export const blockTypes: ReadonlyMap<number, BlockType> = new Map([
  [0, type("F32", 1, 4)],
  [1, type("F16", 1, 2)],
  [2, type("Q4_0", 32, 18)],
  [3, type("Q4_1", 32, 20)],
  [6, type("Q5_0", 32, 22)],
  [7, type("Q5_1", 32, 24)],
  [8, type("Q8_0", 32, 34)],
  [10, type("Q2_K", 256, 84)],
  [11, type("Q3_K", 256, 110)],
  [12, type("Q4_K", 256, 144)],
  [13, type("Q5_K", 256, 176)],
  [14, type("Q6_K", 256, 210)],
  [30, type("BF16", 1, 2)],
]);

/** Types that are known by name, to be refused by it. */
export const unsupportedTypes: ReadonlyMap<number, string> = new Map([
  [9, "Q8_1"],
  [15, "Q8_K"],
  [16, "IQ2_XXS"],
  [17, "IQ2_XS"],
  [18, "IQ3_XXS"],
  [19, "IQ1_S"],
  [20, "IQ4_NL"],
  [21, "IQ3_S"],
  [22, "IQ2_S"],
  [23, "IQ4_XS"],
  [24, "I8"],
  [25, "I16"],
  [26, "I32"],
  [27, "I64"],
  [28, "F64"],
  [29, "IQ1_M"],
  [34, "TQ1_0"],
  [35, "TQ2_0"],
  [39, "MXFP4"],
  [40, "NVFP4"],
]);
