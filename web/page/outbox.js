// What a person has said and the server has not recorded yet. It goes on its way
// also when another conversation is looked at: nothing that was said is lost
// with a click.
import { ask, conversation, persist } from "/api.js";
import { wordsOf } from "/words.js";

const forever = new AbortController().signal;

export class Outbox {
  // changed() is called when the list of conversations has.
  constructor(changed) { Object.assign(this, { changed, rooms: new Map(), sending: 0 }); }

  // room is that of a conversation, or a new one of a conversation that begins
  // with the first thing that is said in it.
  room(id) {
    if (!id) return new Room("");
    if (!this.rooms.has(id)) this.rooms.set(id, new Room(id));
    return this.rooms.get(id);
  }

  // send says something in a room, after all that was said in it before. entry
  // shows what becomes of it.
  send(room, text, editOf, entry) {
    const id = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const sent = { text, entry, message: { text, messageId: id, ...(editOf && { editOf }) }, state: "on its way" };
    entry.note(sent.state);
    room.pending.push(sent);
    this.sending++;
    room.orders = room.orders.then(() => this.deliver(room, sent));
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
      sent.entry.note(sent.state, wordsOf(err));
    }
    this.sending--;
    room.told(sent);
    this.changed();
  }

  // unsent reports whether anything would be lost with the page.
  unsent() { return this.sending > 0; }
}

// Room is a conversation as who speaks in it sees it. Who looks at it sets started
// and told.
class Room {
  constructor(id) { Object.assign(this, { id, pending: [], orders: Promise.resolve() }); this.left(); }

  // left is for when nobody looks any more.
  left() { this.started = this.told = () => {}; }

  // settle returns the message that a record is of, which waits no more.
  settle(record) {
    const text = (record.text ?? "").trim();
    const i = this.pending.findIndex((sent) => sent.state !== "not sent" && sent.text.trim() === text);
    return i < 0 ? undefined : this.pending.splice(i, 1)[0];
  }

  drop(sent) { this.pending = this.pending.filter((other) => other !== sent); }
}
