// Following a conversation over as many connections as it takes. The browser's
// EventSource comes back by itself, with the cursor of the last entry; this takes
// over where it gives up, and says when the line is down.
import { ask, conversation, gone, Refused } from "/api.js";

const grace = 1500;        // a line that is back by then was never down
const announced = 12_000;  // so much more when the server has said that it ends it
const asleep = 5 * 60_000; // a page that nobody sees for so long needs no line
const kinds = ["status", "message", "partial", "delta", "reset", "closed", "reconnect", "error"];

export class Stream {
  // told has a function for each kind that it wants to hear of, and line(up), and
  // refused(err) for what will not pass.
  constructor(id, cursor, told) {
    Object.assign(this, { id, cursor, told, grace, pause: 1000, left: new AbortController() });
    const on = (target, kind, f) => target.addEventListener(kind, f, { signal: this.left.signal });
    on(window, "online", () => this.open());
    on(window, "offline", () => this.line(false));
    on(document, "visibilitychange", () => this.looked());
    this.open();
  }

  open() {
    this.shut();
    const query = new URLSearchParams({ render: "html" });
    if (this.cursor) query.set("cursor", this.cursor);
    this.source = new EventSource(`${conversation(this.id)}/events?${query}`);
    for (const kind of kinds) this.source.addEventListener(kind, (e) => this.hear(kind, e));
  }

  shut() {
    clearTimeout(this.down);
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  close() {
    this.shut();
    clearTimeout(this.sleep);
    this.left.abort();
  }

  hear(kind, event) {
    if (event.target !== this.source) return; // of a line that was given up
    if (event.data === undefined) return this.lost();
    if (event.lastEventId) this.cursor = event.lastEventId;
    const data = JSON.parse(event.data);
    if (kind === "error") return this.ended(new Refused({ unauthorized: 401, "not found": 404 }[data.error] ?? 500, data));
    if (kind === "reconnect") this.grace = announced;
    else if (kind === "status") this.line(true);
    else if (kind === "closed") this.close();
    this.told[kind]?.(data);
  }

  // lost is the line going down, or not coming up.
  lost() {
    if (this.source.readyState === EventSource.CLOSED) return this.ask();
    clearTimeout(this.down);
    this.down = setTimeout(() => this.line(false), navigator.onLine ? this.grace : 0);
  }

  line(up) {
    clearTimeout(this.down);
    if (up) [this.pause, this.grace] = [1000, grace];
    this.told.line(up);
  }

  // ask finds out why the server will not stream: the browser does not tell.
  async ask() {
    this.shut();
    try {
      const info = await ask("GET", conversation(this.id));
      if (this.left.signal.aborted) return;
      if (info.state === "open") return this.later();
      this.close();
      this.told.closed(info); // 204: there is nothing more to come
    } catch (err) {
      this.ended(err);
    }
  }

  ended(err) {
    if (this.left.signal.aborted) return;
    if (err.passes) return this.later();
    this.close();
    if (err.status === 401) gone();
    else this.told.refused(err);
  }

  later() {
    this.shut();
    this.line(false);
    this.retry = setTimeout(() => this.open(), this.pause * (0.5 + Math.random() / 2));
    this.pause = Math.min(2 * this.pause, 15_000);
  }

  // looked lets go of the line of a page that nobody looks at: over HTTP/1.1 a
  // browser has six for all of them.
  looked() {
    clearTimeout(this.sleep);
    if (document.hidden) this.sleep = setTimeout(() => this.shut(), asleep);
    else if (!this.source) this.open();
  }
}
