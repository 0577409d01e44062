/** A model directory that cannot be used. The message is one line that names the file or setting and the next step. */
export class CheckpointError extends Error {
  override readonly name = "CheckpointError";
}
