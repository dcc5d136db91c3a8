// The answer that is being written. Of one for somebody else no words come before it
// is whole (C-37.9).
import { Entry } from "/entry.js";

const longestPause = 1000;

export class Live {
  // grown() is called when there is more of it to see. other is the name of somebody
  // else who is answered, "" for the person's own.
  constructor(turn, grown, other) {
    Object.assign(this, { turn, grown, other, waiting: "", pause: 0, timer: 0, entry: new Entry("assistant", "Agent") });
    this.element = this.entry.element;
    this.element.classList.add("live");
    this.element.dataset.turn = turn;
    this.entry.note(other ? `${other} is being answered` : "writing");
  }

  // whole shows all that was said so far.
  whole(text) {
    this.waiting = "";
    this.entry.say(text);
    this.grown();
  }

  // more shows words that follow. It waits with them as long as a long text takes
  // the browser, a few times over, so that the page stays at hand.
  more(text) {
    this.waiting += text;
    this.timer ||= setTimeout(() => this.write(), this.pause);
  }

  write() {
    const began = performance.now();
    this.timer = 0;
    this.entry.add(this.waiting);
    this.waiting = "";
    this.grown();
    this.pause = Math.min(4 * (performance.now() - began), longestPause);
  }

  // end takes it away, or puts the record in its place.
  end(record) {
    clearTimeout(this.timer);
    if (record) this.element.replaceWith(record);
    else this.element.remove();
  }
}
