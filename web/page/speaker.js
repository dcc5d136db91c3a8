// What a screen reader is told: an answer sentence by sentence, while it comes.

const sentence = /^[^.!?。！？\n]*(?:[.!?。！？]+["'”’)\]]*(?=\s)|[。！？]|\n)\s*/u;
const mostKept = 20;
const longest = 400; // characters that wait for the end of their sentence

export class Speaker {
  constructor(place) { this.place = place; this.begin(); }

  // begin forgets the last answer.
  begin() { this.heard = this.rest = ""; }

  clear() { this.begin(); this.place.replaceChildren(); }

  // more takes words that follow those before.
  more(text) {
    this.heard += text;
    this.rest += text;
    for (let found; (found = this.rest.match(sentence)); this.rest = this.rest.slice(found[0].length)) this.say(found[0]);
    for (let cut; this.rest.length > longest; this.rest = this.rest.slice(cut)) {
      cut = this.rest.lastIndexOf(" ", longest) + 1 || longest;
      this.say(this.rest.slice(0, cut));
    }
  }

  // whole takes all that was said so far; of that, what was heard is not told
  // again.
  whole(text) {
    if (!text.startsWith(this.heard)) this.begin();
    this.more(text.slice(this.heard.length));
  }

  // end tells what is left of an answer whose whole text this is.
  end(text) {
    this.whole(text);
    this.say(this.rest);
    this.begin();
  }

  say(text) {
    if (!text.trim()) return;
    const p = document.createElement("p");
    p.textContent = text.trim();
    this.place.append(p);
    while (this.place.childElementCount > mostKept) this.place.firstChild.remove();
  }
}
