import type { Side } from "../checkpoint/late-interaction.ts";

/** What a request says about the text to put in front of its inputs. */
export interface PromptChoice {
  /** Name of one of the checkpoint's prompts, or one that is always valid, see `knownPromptNames`. */
  readonly promptName?: string | undefined;
  /** Task text for families with an instruction format; beats `promptName` unless it is blank. */
  readonly instruction?: string | undefined;
}

/** The checkpoint's prompt table. */
export interface PromptTable {
  readonly prompts: Readonly<Record<string, string>>;
  readonly defaultPromptName?: string | undefined;
  /** The family's own format of a task instruction; absent: instructions are ignored. */
  readonly instructionPrompt?: ((instruction: string) => string) | undefined;
}

/** Valid for every checkpoint; where it has no such prompt they add nothing. */
const UNIVERSAL_NAMES: readonly Side[] = ["query", "document"];

/** Names that other servers use, unless the checkpoint has a prompt of that very name. */
const SYNONYMS: ReadonlyMap<string, Side> = new Map([
  ["search_query", "query"],
  ["search_document", "document"],
  ["passage", "document"],
]);

/** Every `prompt_name` / `input_type` that a checkpoint with these prompts accepts, its own first. */
export function knownPromptNames(own: readonly string[]): string[] {
  return [...new Set([...own, ...UNIVERSAL_NAMES, ...SYNONYMS.keys()])];
}

/** The text to put in front of an input, "" for none. Throws RangeError for a name that is not known. */
export function promptText(table: PromptTable, choice: PromptChoice): string {
  const { prompts, defaultPromptName, instructionPrompt } = table;
  if (instructionPrompt && choice.instruction?.trim()) return instructionPrompt(choice.instruction);
  const name = choice.promptName ?? defaultPromptName;
  if (name === undefined) return "";
  if (Object.hasOwn(prompts, name)) return prompts[name]!;
  const side = sideNamed(name);
  if (side) return prompts[side] ?? "";
  const known = knownPromptNames(Object.keys(prompts)).join(", ");
  throw new RangeError(`unknown prompt "${name}" (known: ${known})`);
}

/** The side of a search that the choice names, if any: a prompt of the checkpoint's own may be about anything else. */
export function sideOf(
  { prompts, defaultPromptName }: PromptTable,
  { promptName = defaultPromptName }: PromptChoice,
): Side | undefined {
  if (promptName === undefined) return undefined;
  const isOwn = Object.hasOwn(prompts, promptName);
  return isOwn ? UNIVERSAL_NAMES.find((side) => side === promptName) : sideNamed(promptName);
}

function sideNamed(name: string): Side | undefined {
  return SYNONYMS.get(name) ?? UNIVERSAL_NAMES.find((side) => side === name);
}
