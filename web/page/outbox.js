// What a person has said and the server has not recorded yet. It goes on its way
// also when another conversation is looked at: nothing that was said is lost
// with a click.
import { ask, conversation, persist } from "/api.js";
import { Entry } from "/entry.js";
import { nth } from "/queue.js";
import { wordsOf } from "/words.js";

const forever = new AbortController().signal;
const kept = "parley outbox"; // in the storage of the tab, which a reload leaves

export class Outbox {
  // me is who speaks. changed() is called when the list of conversations has.
  constructor(me, changed) {
    Object.assign(this, { owner: JSON.stringify(me), changed, rooms: new Map(), leaving: new Set(), keeps: true });
    this.restore();
  }

  // keep writes down what a reload of the page must not lose. What begins a
  // conversation is not of it: sent anew, it could begin two.
  keep() {
    if (!this.keeps) return;
    const rest = [...this.rooms.values()].flatMap((room) => room.pending.filter((sent) => !sent.elsewhere).map(({ message, after, state, why }) => ({ id: room.id, message, after, state, why })));
    try {
      if (rest.length) sessionStorage.setItem(kept, JSON.stringify({ owner: this.owner, rest }));
      else sessionStorage.removeItem(kept);
    } catch {} // no storage, or no room in it: a reload loses it
  }

  // restore goes on with what a reload has cut off, under the same ids.
  restore() {
    let found = {};
    try { found = JSON.parse(sessionStorage.getItem(kept)) ?? {}; } catch {}
    for (const { id, message, after, state, why } of found.owner === this.owner ? found.rest : []) {
      this.put(this.room(id), { message, after, state, why });
    }
    this.keep();
  }

  // forget leaves nothing behind for who comes next.
  forget() {
    this.keeps = false;
    try { sessionStorage.removeItem(kept); } catch {}
  }

  // room is that of a conversation, or a new one of a conversation that begins
  // with the first thing that is said in it.
  room(id) {
    if (!id) return new Room("");
    if (!this.rooms.has(id)) this.rooms.set(id, new Room(id));
    return this.rooms.get(id);
  }

  // send says something in a room, after all that was said in it before, and
  // returns the entry that shows what becomes of it.
  send(room, text, editOf) {
    const id = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const sent = this.put(room, { message: { text, messageId: id, ...(editOf && { editOf }) }, after: room.heard, state: "on its way" });
    this.keep();
    return sent.entry;
  }

  // put puts a message among those of its room that wait, and sends it if it was
  // not.
  put(room, sent) {
    sent.text = sent.message.text;
    sent.entry = new Entry("user", "You");
    sent.entry.say(sent.text);
    sent.entry.note(sent.state, sent.why);
    room.pending.push(sent);
    if (sent.state === "on its way") {
      this.leaving.add(sent);
      room.orders = room.orders.then(() => this.deliver(room, sent));
    }
    return sent;
  }

  // line takes note of the messages that wait in a room. Those of the person's that
  // nobody knows here were sent from elsewhere, and go when they wait no more.
  line(room, waiting) {
    const found = new Map();
    waiting.forEach(({ mine, text = "" }, i) => {
      if (!mine) return;
      const sent = room.pending.find((other) => !found.has(other) && other.state !== "not sent" && other.text.trim() === text.trim());
      found.set(sent ?? this.put(room, { message: { text }, after: room.heard, state: "sent", elsewhere: true }), i + 1);
    });
    for (const sent of [...room.pending]) {
      sent.place = found.get(sent) ?? 0;
      if (sent.state === "sent") sent.entry.note(sent.place ? `${nth(sent.place)} in line` : "sent");
      if (!sent.elsewhere || sent.place) continue;
      sent.entry.element.remove();
      room.drop(sent);
    }
  }

  // deliver sends a message under one id, however often it takes.
  async deliver(room, sent) {
    const waiting = (err) => sent.entry.note("waiting", wordsOf(err));
    try {
      if (!room.id) {
        room.id = (await persist(forever, () => ask("POST", conversation(), {}), waiting)).id;
        this.rooms.set(room.id, room);
        room.started(room.id);
      }
      await persist(forever, () => ask("POST", conversation(room.id) + "/turns", sent.message), waiting);
      sent.state = "sent";
      sent.entry.note(sent.state);
    } catch (err) {
      sent.state = "not sent";
      sent.why = wordsOf(err);
      sent.entry.note(sent.state, sent.why);
    }
    this.leaving.delete(sent);
    this.keep();
    room.told(sent);
    this.changed();
  }

  // unsent reports whether anything would be lost with the page. What is on record
  // is not, also where the server's answer is still on its way.
  unsent() { return [...this.leaving].some((sent) => !sent.recorded); }
}

// Room is a conversation as who speaks in it sees it. Who looks at it sets started
// and told.
class Room {
  constructor(id) { Object.assign(this, { id, pending: [], heard: 0, orders: Promise.resolve() }); this.left(); }

  // left is for when nobody looks any more.
  left() { this.started = this.told = () => {}; }

  // settle returns the message that a record is of, which waits no more. The same
  // words that stood there before it was said are not it.
  settle(record) {
    const text = (record.text ?? "").trim();
    const i = this.pending.findIndex((sent) => sent.state !== "not sent" && sent.text.trim() === text &&
      (sent.elsewhere || sent.message.editOf === record.editOf) && !(record.ord <= sent.after));
    if (i < 0) return undefined;
    const [sent] = this.pending.splice(i, 1);
    sent.recorded = true;
    return sent;
  }

  // pass lets go of what was sent so long before the oldest record that is shown,
  // of that ord, that its own may be among those that are not.
  pass(oldest) { this.pending = this.pending.filter((sent) => sent.state !== "sent" || !(oldest > sent.after + 1)); }

  drop(sent) { this.pending = this.pending.filter((other) => other !== sent); }
}
