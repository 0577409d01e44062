// The page works on the routes that every client uses, by relative addresses: it may lie behind a proxy's prefix.

const POLL_MS = 1000;
const MOST_TEXTS = 24;
const KEY = "mlxcel-api-key";

const byId = (id) => document.getElementById(id);

/** @throws Error with the server's own message */
async function ask(path, body) {
  const key = sessionStorage.getItem(KEY);
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: key ? { authorization: `Bearer ${key}` } : {},
    body: body && JSON.stringify(body),
  });
  byId("key-form").hidden = response.status !== 401;
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function element(name, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
}

function showStatus({ version, models, per_second: perSecond }) {
  byId("version").textContent = version;
  const loading = models.some(({ state }) => state === "loading");
  byId("state").textContent = loading ? "loading …" : "ready";
  const rows = models.map(({ id, kind, state, waiting, queue_depth: depth }) => {
    const row = element("tr");
    row.append(...[id, kind, state, `${waiting} of ${depth}`].map((text) => element("td", text)));
    return row;
  });
  byId("models").tBodies[0].replaceChildren(...rows);
  for (const name of ["requests", "items", "tokens"]) {
    byId(name).textContent = perSecond[name].toLocaleString(undefined, {
      maximumFractionDigits: 1,
    });
  }
  const kinds = models.filter(({ state }) => state === "ready").map(({ kind }) => kind);
  byId("embedding").hidden = !kinds.includes("embedding");
  byId("ranking").hidden = kinds.every((kind) => kind === "embedding");
}

async function poll() {
  if (!document.hidden) {
    try {
      showStatus(await ask("status"));
    } catch (error) {
      byId("state").textContent = error.message;
    }
  }
  setTimeout(poll, POLL_MS);
}

/** An embedding as rows: models with a vector per token have many, the others one. */
const rowsOf = (embedding) => (Array.isArray(embedding[0]) ? embedding : [embedding]);

function cosine(a, b) {
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return dot / Math.sqrt(aa * bb);
}

/** The mean over the rows of `a` of the best cosine among the rows of `b`. */
function similarity(a, b) {
  const best = a.map((row) => Math.max(...b.map((other) => cosine(row, other))));
  return best.reduce((sum, value) => sum + value, 0) / best.length;
}

const lines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

async function compare() {
  const input = lines(byId("texts").value).slice(0, MOST_TEXTS);
  const { data, usage } = await ask("v1/embeddings", { input });
  const vectors = data.map(({ embedding }) => rowsOf(embedding));
  const head = element("tr");
  head.append(element("th"), ...input.map((_, i) => element("th", `${i + 1}`)));
  const rows = vectors.map((a, i) => {
    const row = element("tr");
    const title = element("th", `${i + 1} ${input[i]}`);
    title.scope = "row";
    const cells = vectors.map((b) => {
      const value = similarity(a, b);
      const cell = element("td", value.toFixed(2));
      cell.style.setProperty("--heat", String(Math.max(0, value) ** 2));
      return cell;
    });
    row.append(title, ...cells);
    return row;
  });
  byId("heat-map").replaceChildren(head, ...rows);
  return `${usage.total_tokens} tokens`;
}

async function rank() {
  const documents = lines(byId("documents").value);
  const { results, usage } = await ask("v1/rerank", { query: byId("query").value, documents });
  const entries = results.map(({ index, relevance_score: score }) => {
    const entry = element("li");
    const bar = element("meter");
    bar.value = Math.max(0, Math.min(1, score));
    entry.append(bar, element("span", `${score.toFixed(3)}  ${documents[index]}`));
    return entry;
  });
  byId("ranks").replaceChildren(...entries);
  return `${usage.total_tokens} tokens`;
}

/** Runs `work` when the form is sent, and shows the remark that it returns and the time, or what went wrong. */
function onSubmit(form, work) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const output = form.querySelector("output");
    output.textContent = "…";
    const startedAt = performance.now();
    try {
      output.textContent = `${await work()}, ${Math.round(performance.now() - startedAt)} ms`;
      output.className = "";
    } catch (error) {
      output.textContent = error.message;
      output.className = "error";
    }
  });
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, byId("key").value);
});
onSubmit(byId("embedding").querySelector("form"), compare);
onSubmit(byId("ranking").querySelector("form"), rank);
void poll();
