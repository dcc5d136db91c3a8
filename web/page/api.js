// Asking the server.

// Refused is a request that failed: by an answer of the server's, or without one
// (status 0).
export class Refused extends Error {
  constructor(status, problem = {}, after = 0) {
    super(problem.error ?? "no answer");
    this.status = status;
    this.code = problem.error ?? "";
    this.reason = problem.reason ?? "";
    this.errorId = problem.errorId ?? "";
    this.after = after; // seconds until it may be tried again
  }
  // passes reports whether trying again may help.
  get passes() { return this.status === 0 || this.status === 429 || this.status >= 500; }
}

let told = () => {};

// whenGone calls f whenever the session turns out to be over.
export function whenGone(f) { told = f; }

export function gone() { told(); }

// ask sends a request and returns the JSON of its answer.
export async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method, credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(30_000),
      headers: body ? { "Content-Type": "application/json" } : {}, body: body && JSON.stringify(body),
    });
  } catch {
    throw new Refused(0);
  }
  const answer = response.status === 204 ? {} : await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401 && path !== "/session") gone();
  throw new Refused(response.status, answer, Number(response.headers.get("Retry-After")) || 0);
}

export const conversation = (id) => "/v1/conversations" + (id ? "/" + encodeURIComponent(id) : "");

// persist asks again and again while it may help, and less often each time. It
// tells waiting(err) before each pause, and stops when signal is aborted.
export async function persist(signal, attempt, waiting = () => {}) {
  for (let pause = 500; ; pause = Math.min(2 * pause, 15_000)) {
    try {
      return await attempt();
    } catch (err) {
      if (!(err instanceof Refused) || !err.passes || signal.aborted) throw err;
      waiting(err);
      await new Promise((done) => {
        const timer = setTimeout(done, Math.max(err.after * 1000, pause * (0.5 + Math.random() / 2)));
        addEventListener("online", () => { clearTimeout(timer); done(); }, { once: true, signal });
        signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
      });
      if (signal.aborted) throw err;
    }
  }
}
