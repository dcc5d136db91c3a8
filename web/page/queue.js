// The line of messages that wait for their turn, and the person's places in it.
import { ask, conversation } from "/api.js";

const settling = 250; // a message that is taken up at once never stood in the line

// nth is a place in words.
export const nth = (n) => n + ({ one: "st", two: "nd", few: "rd" }[ordinals.select(n)] ?? "th");
const ordinals = new Intl.PluralRules("en", { type: "ordinal" });

// Queue asks the server which messages wait in a conversation, not more often than
// they change.
export class Queue {
  // found(waiting) is told of them.
  constructor(id, found) { Object.assign(this, { id, found, news: 0, timer: 0, left: false }); }

  // ask asks soon.
  ask() {
    this.news++;
    clearTimeout(this.timer);
    if (!this.left) this.timer = setTimeout(() => this.read(), settling);
  }

  async read() {
    const news = this.news;
    let waiting;
    try {
      waiting = (await ask("GET", conversation(this.id) + "/waiting")).waiting ?? [];
    } catch {
      return; // the stream tells what is wrong; places are worth no more
    }
    if (!this.left && news === this.news) this.found(waiting); // else another answer is on its way
  }

  leave() {
    this.left = true;
    clearTimeout(this.timer);
  }
}
