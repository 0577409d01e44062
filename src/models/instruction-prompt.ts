/** The text to put in front of an input for a task instruction. */
export type InstructionPrompt = (task: string) => string;

/** As E5-Mistral (Wang et al. 2024) was trained, and most after it. */
export const spacedInstruction: InstructionPrompt = (task) => `Instruct: ${task}\nQuery: `;

/** As Qwen3-Embedding was trained. */
export const tightInstruction: InstructionPrompt = (task) => `Instruct: ${task}\nQuery:`;

const EXAMPLE = /^Instruct: .*\nQuery:( ?)$/;

/**
 * `ofFamily`, unless one of the checkpoint's own prompts shows that it was trained with the other form. Families
 * without a format have none here either.
 */
export function instructionPromptOf(
  ofFamily: InstructionPrompt | undefined,
  prompts: Readonly<Record<string, string>>,
): InstructionPrompt | undefined {
  if (!ofFamily) return undefined;
  const blanks = Object.values(prompts).flatMap(
    (prompt) => EXAMPLE.exec(prompt)?.slice(1, 2) ?? [],
  );
  if (blanks.length === 0) return ofFamily;
  return blanks[0] === "" ? tightInstruction : spacedInstruction;
}
