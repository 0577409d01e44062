/** A model directory that cannot be used. The message is one line that names the file or setting and the next step. */
export class CheckpointError extends Error {
  override readonly name = "CheckpointError";
}

/** `what` is wrong with a file that was cut short or changed on its way here. */
export function damagedFile(path: string, what: string): CheckpointError {
  return new CheckpointError(`${path} is damaged or incomplete: ${what}; download it again`);
}
