/** What the hub's refusals mean, and what to do about them. */

/** A repository as it was asked for. */
export interface HubTarget {
  readonly repository: string;
  readonly revision: string;
}

interface HubAccess {
  /** Without a slash at the end. */
  readonly endpoint: string;
  readonly hasToken: boolean;
}

const LONGEST_MESSAGE = 200;

/** The error for an answer that no further attempt would change. */
export function hubRefusal(
  { status, headers }: Pick<Response, "status" | "headers">,
  { repository, revision }: HubTarget,
  { endpoint: address, hasToken }: HubAccess,
): Error {
  const { host } = new URL(address);
  // a name and a password for a mirror are not for the screen
  const endpoint = address.replace(/\/\/[^/@]*@/, "//");
  const code = headers.get("x-error-code") ?? "";
  const said = spoken(headers.get("x-error-message"));
  const page = `${endpoint}/${repository}`;
  if (code === "GatedRepo") {
    return new Error(
      hasToken
        ? `model ${repository} is gated, and the token's account has no access: accept its licence at ${page}`
        : `model ${repository} is gated: accept its licence at ${page}, then set HF_TOKEN or --hf-token`,
    );
  }
  if (status === 401 && /invalid (credentials|token)/i.test(said)) {
    return new Error(`${host} does not accept the token: renew it at ${endpoint}/settings/tokens`);
  }
  if (code === "RevisionNotFound") {
    return new Error(
      `model ${repository} has no revision ${revision} at ${host}: give --revision a branch, a tag or a commit of it`,
    );
  }
  if (code === "EntryNotFound") {
    return new Error(`model ${repository}: a file that ${host} lists is not there; try again`);
  }
  // The hub hides private repositories from strangers: it says 401 of one that does not exist.
  if (code === "RepoNotFound" || status === 401 || status === 404) {
    const access = hasToken
      ? "if it is private, use a token that may read it"
      : "if it is private, set HF_TOKEN or --hf-token";
    return new Error(
      `model ${repository} was not found at ${host}: check the spelling of <owner>/<name>; ${access}`,
    );
  }
  return new Error(`model ${repository}: ${host} answered ${status}${said && `: ${said}`}`);
}

/** A server's words as a part of one line. */
function spoken(message: string | null): string {
  return (message ?? "")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, LONGEST_MESSAGE);
}
