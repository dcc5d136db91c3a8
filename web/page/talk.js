// The conversation that is open: what was said, what is being said, and what the
// person says.
import { ask, conversation, persist } from "/api.js";
import { Composer } from "/composer.js";
import { entryOf } from "/entry.js";
import { Live } from "/live.js";
import { People } from "/people.js";
import { Queue } from "/queue.js";
import { Scroll } from "/scroll.js";
import { Speaker } from "/speaker.js";
import { Stream } from "/stream.js";
import { endOf, nameOf, sameIdentity, shorten, wordsOf } from "/words.js";

const $ = (id) => document.getElementById(id);
const pageSize = 50;
const patience = 10_000; // with a stream that does not bring what was sent

// begins reports whether a record is a question that is being answered, if it is the
// newest; of a restricted one more is not known.
const begins = (r) => r && r.role !== "assistant" && (r.status === "accepted" || r.status === "restricted");

export class Talk {
  // me is who looks. started(id) is called when a first message has begun a
  // conversation, said() when something was said, over(id) when the person takes part
  // in a conversation no more.
  constructor(me, outbox, { started, said, over }) {
    Object.assign(this, { me, outbox, started, said, over, room: outbox.room(""), left: new AbortController() });
    this.entries = $("entries");
    this.speaker = new Speaker($("spoken"));
    this.scroll = new Scroll($("scroll"), $("jump"), () => this.older());
    this.composer = new Composer({ send: (text, editOf) => this.send(text, editOf), stop: () => this.stop() });
    this.people = new People(me, () => this.stance());
    this.leave();
  }

  // leave lets go of the conversation.
  leave() {
    this.left.abort();
    this.room.left();
    this.stream?.close();
    this.live?.end();
    this.queue?.leave();
    this.people.of("");
    this.stream = this.live = this.queue = null;
    this.shared = this.read = false;
    this.left = new AbortController();
    this.seen = new Set();
    this.drawn = new Map(); // elements by the ord of their record
    this.replaced = new Set(); // the ords of what was said anew
    this.before = null; // the cursor of what is older; null if there is nothing
  }

  // open shows a conversation from its end, or a new one.
  open(id, title) {
    this.leave();
    this.room = this.outbox.room(id);
    this.room.started = (id) => this.begun(id);
    this.room.told = (sent) => this.told(sent);
    this.entries.replaceChildren();
    this.speaker.clear();
    this.composer.show(id);
    $("title").textContent = "";
    this.name(title || (id ? "Conversation" : "New conversation"));
    $("older").textContent = "";
    this.line(true);
    $("empty").hidden = Boolean(id);
    if (id) this.load(id, this.left.signal);
    else if (matchMedia("(hover: hover)").matches) $("text").focus();
  }

  async load(id, signal) {
    $("older").textContent = "Reading …";
    try {
      const newest = await persist(signal, () => this.history(id), (err) => this.line(false, wordsOf(err)));
      if (signal.aborted) return;
      this.line(true);
      $("older").textContent = "";
      const records = this.page(newest);
      this.entries.append(...records.map((r) => this.draw(r)));
      for (const record of records) if (record.role === "user") this.room.settle(record);
      this.room.pass(this.before ? records[0]?.ord : 0);
      this.outbox.keep();
      for (const sent of this.room.pending) { this.entries.append(sent.entry.element); this.told(sent); }
      $("empty").hidden = this.entries.childElementCount > 0;
      const last = records.findLast((r) => r.status !== "rejected");
      this.read = true;
      if (begins(last)) this.answer(last.turn, last.asker);
      this.scroll.follow();
      this.follow(records.at(-1)?.cursor);
      if (this.live || this.room.pending.length) this.queue.ask();
    } catch (err) {
      if (!signal.aborted) this.refused(err);
    }
  }

  history(id, cursor) {
    const query = new URLSearchParams({ direction: "backward", limit: pageSize, render: "html" });
    if (cursor) query.set("cursor", cursor);
    return ask("GET", `${conversation(id)}/history?${query}`);
  }

  // page takes note of a page of the history, and returns its records, oldest first.
  page({ entries, done, nextCursor }) {
    this.before = done ? null : nextCursor;
    const records = (entries ?? []).reverse();
    const first = records.find((r) => r.turn === 1 && r.role === "user");
    if (first?.text) this.name(first.text);
    return records;
  }

  // older reads what was said before the first message that is shown.
  async older() {
    if (!this.before || this.reading === this.left) return;
    const [left, id] = [this.left, this.room.id];
    this.reading = left;
    $("older").textContent = "Reading older messages …";
    try {
      const found = await persist(left.signal, () => this.history(id, this.before));
      if (left.signal.aborted) return;
      const records = this.page(found);
      $("older").textContent = "";
      this.scroll.above(() => this.entries.prepend(...records.map((r) => this.draw(r))));
      this.reading = null;
      this.scroll.look();
    } catch (err) {
      if (left.signal.aborted) return;
      this.before = null;
      $("older").textContent = wordsOf(err);
    }
  }

  // name is what the conversation is called.
  name(title) {
    if (!title) return;
    const short = shorten(title);
    $("title").textContent = short;
    document.title = short + " · Parley";
  }

  draw(record) {
    this.seen.add(record.cursor);
    this.room.heard = Math.max(this.room.heard, record.ord ?? 0);
    const { element } = entryOf(record, this.me, (r) => this.composer.edit(r));
    if (record.ord) this.drawn.set(record.ord, element);
    if (record.editOf && record.status !== "rejected") {
      this.replaced.add(record.editOf);
      this.drawn.get(record.editOf)?.classList.add("old");
    }
    element.classList.toggle("old", this.replaced.has(record.ord)); // the edit may have been drawn first
    return element;
  }

  // put puts an element where what is on record ends.
  put(element) { this.entries.insertBefore(element, this.room.pending[0]?.entry.element ?? null); }

  follow(cursor) {
    const room = this.room;
    this.queue = new Queue(room.id, (waiting) => this.waits(waiting));
    this.stream = new Stream(room.id, cursor, {
      line: (up) => this.line(up),
      status: (info) => this.stands(info),
      message: (record) => this.message(record),
      partial: ({ turn, text, truncated }) => this.whole(turn, (truncated ? "… " : "") + (text ?? "")),
      delta: ({ turn, text }) => { this.answer(turn); this.speaker.more(text); this.live.more(text); },
      reset: ({ turn }) => this.whole(turn, ""),
      closed: (info) => this.closed(info),
      refused: (err) => this.refused(err),
    });
  }

  // message shows an entry that is on record now.
  message(record) {
    if (this.seen.has(record.cursor)) return;
    $("empty").hidden = true;
    if (record.role === "user") {
      this.room.settle(record)?.entry.element.remove();
      this.outbox.keep();
      const element = this.draw(record);
      this.put(element);
      if (record.status === "rejected") this.warn(element);
      if (record.turn === 1) this.name(record.text);
      if (begins(record)) this.answer(record.turn, record.asker);
    } else {
      const element = this.draw(record);
      if (this.live?.turn === record.turn) this.silence(element);
      else this.put(element);
      this.speaker.end(record.text ?? "");
      if (record.status !== "complete") this.warn(element);
    }
    this.people.met(record.asker);
    if (this.room.pending.length) this.queue.ask();
    this.said();
    this.scroll.changed();
  }

  // stands hears how the conversation stands.
  stands(info) {
    this.shared = info.shared === true;
    this.people.of(this.shared ? this.room.id : "");
    this.stance();
  }

  // stance shows what the person may do about the answer that is awaited.
  stance() {
    this.composer.stoppable(Boolean(this.live) && (!this.live.other || this.people.manages));
    let hint = "";
    if (this.shared && this.live) hint = this.live.other || this.room.pending.some((sent) => sent.place) ? "What you send waits for its turn." : "What you send interrupts the answer.";
    this.composer.hint(hint);
  }

  // waits shows the person's places in the line.
  waits(waiting) {
    this.outbox.line(this.room, waiting);
    for (const { entry } of this.room.pending) if (!entry.element.isConnected) this.entries.append(entry.element);
    this.stance();
    this.scroll.changed();
  }

  // warn tells a screen reader what an entry says of its state.
  warn(element) {
    this.speaker.say(`${element.querySelector(".mark").textContent}. ${element.querySelector(".why").textContent}`);
  }

  // answer shows that an answer is awaited, by the person where no other asked.
  answer(turn, asker) {
    if (this.live?.turn === turn) return;
    const other = asker && !sameIdentity(asker, this.me) ? nameOf(asker, this.me) : "";
    this.live?.end();
    this.live = new Live(turn, () => this.scroll.changed(), other);
    this.put(this.live.element);
    this.speaker.begin();
    if (other) this.speaker.say(`${other} is being answered.`);
    this.stance();
  }

  // whole shows all that was said so far of an answer.
  whole(turn, text) {
    this.answer(turn);
    this.speaker.whole(text);
    this.live.whole(text);
  }

  // silence ends the answer that is awaited; its record, if there is one, takes its
  // place.
  silence(record) {
    this.live?.end(record);
    this.live = null;
    this.stance();
  }

  send(text, editOf) {
    $("empty").hidden = true;
    this.entries.append(this.outbox.send(this.room, text, editOf).element);
    this.scroll.follow();
  }

  // begun is told that what was said first has begun a conversation.
  begun(id) {
    this.composer.renamed(id);
    this.name(this.room.pending[0]?.text);
    this.started(id);
    this.read = true;
    this.follow();
  }

  // told hears what became of a message: one that was refused can be taken back, of
  // one that was taken the record comes soon.
  told(sent) {
    if (sent.state === "sent") {
      const [room, stream] = [this.room, this.stream];
      this.queue?.ask();
      setTimeout(() => { if (room.pending.includes(sent) && !sent.place && stream === this.stream) stream?.open(); }, patience);
    }
    if (sent.state !== "not sent") return;
    this.warn(sent.entry.element);
    sent.entry.tools.replaceChildren();
    sent.entry.offer("Take back", () => {
      this.room.drop(sent);
      this.outbox.keep();
      sent.entry.element.remove();
      this.composer.draft([sent.text, $("text").value].filter(Boolean).join("\n"));
      $("text").focus();
    });
  }

  async stop() {
    if (!this.live) return;
    if (this.stopping === this.live.turn) return;
    this.stopping = this.live.turn;
    try {
      await ask("POST", conversation(this.room.id) + "/stop", { turn: this.live.turn });
    } catch (err) {
      this.composer.advise(wordsOf(err));
      this.stopping = 0;
    }
  }

  line(up, why = "The connection is lost. Trying again …") { $("line").textContent = up ? "" : why; }

  closed(info) {
    this.line(true);
    this.silence();
    this.composer.close(endOf(info.state));
  }

  refused(err) {
    this.line(true);
    this.silence();
    $("older").textContent = "";
    if (err.status !== 404 || !this.read) return this.composer.close(wordsOf(err));
    this.people.of("");
    this.queue?.leave();
    this.composer.close("You take no part in this conversation any more.");
    this.over(this.room.id);
  }
}
