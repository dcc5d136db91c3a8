// The list of conversations, and the search in their titles.
import { ask, persist } from "/api.js";
import { make } from "/entry.js";
import { shorten, timeOf, wordsOf } from "/words.js";

const pageSize = 50;
const mostSearched = 2000; // conversations whose titles are looked at
const forever = new AbortController().signal;

// fold makes texts alike that people take for the same.
const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();

export class Threads {
  // shown() is called when the list has changed.
  constructor(list, note, search, shown) {
    Object.assign(this, { list, note, search, shown, all: [], items: new Map(), cursor: "", done: false, current: "" });
    search.addEventListener("input", () => this.show());
    list.addEventListener("scroll", () => {
      if (list.scrollTop + list.clientHeight > list.scrollHeight - 200) this.more();
    });
  }

  // load reads the newest conversations again; those further down are kept. While
  // it reads, a second call makes it read once more.
  async load(current = this.current) {
    this.current = current;
    this.mark();
    this.again = this.loading;
    if (this.loading) return;
    this.loading = true;
    const page = await this.fetch("");
    this.loading = false;
    if (page) {
      const fresh = new Set(page.conversations.map((c) => c.id));
      this.all = [...page.conversations, ...this.all.filter((c) => !fresh.has(c.id))];
      if (!this.cursor) [this.cursor, this.done] = [page.nextCursor, page.done];
      this.show();
    }
    if (this.again) this.load();
  }

  // more reads on where the list ends.
  async more() {
    if (this.done || this.reading || !this.cursor) return;
    this.reading = true;
    const page = await this.fetch(this.cursor);
    this.reading = false;
    if (!page) return;
    const known = new Set(this.all.map((c) => c.id));
    this.all.push(...page.conversations.filter((c) => !known.has(c.id)));
    [this.cursor, this.done] = [page.nextCursor, page.done];
    this.show();
  }

  async fetch(cursor) {
    if (!this.all.length) this.note.textContent = "Reading your conversations …";
    const complain = (err) => { this.note.textContent = wordsOf(err); };
    try {
      const page = await persist(forever, () => ask("GET", `/v1/conversations?limit=${pageSize}&cursor=${encodeURIComponent(cursor)}`), complain);
      return { ...page, conversations: page.conversations ?? [] };
    } catch (err) {
      complain(err);
    }
  }

  // show draws the list as it is, or what of it has the words that are sought. An
  // item stays the same element, and has the focus still if it had it.
  show() {
    const words = fold(this.search.value.trim());
    const shown = words ? this.all.filter((c) => fold(c.title).includes(words)) : this.all;
    const focus = document.activeElement;
    shown.forEach((c, i) => {
      const item = this.draw(c);
      if (this.list.children[i] !== item) this.list.insertBefore(item, this.list.children[i] ?? null);
    });
    while (this.list.childElementCount > shown.length) this.list.lastChild.remove();
    if (this.list.contains(focus)) focus.focus({ preventScroll: true });
    this.mark();
    this.say(words, shown.length);
    this.shown();
  }

  // say tells what the list does not show.
  say(words, found) {
    if (words && !this.done && this.all.length < mostSearched) {
      this.note.textContent = "Searching …";
      this.more();
    } else if (words && !this.done) this.note.textContent = `Only the titles of the ${this.all.length} newest conversations were searched.`;
    else if (words && !found) this.note.textContent = "No title has these words.";
    else this.note.textContent = this.all.length ? "" : "No conversations yet.";
  }

  // draw brings the item of a conversation up to date.
  draw(c) {
    let item = this.items.get(c.id);
    const key = JSON.stringify([c.title, c.updated, c.state, c.shared]);
    if (item?.dataset.key === key) return item;
    if (!item) {
      item = make("li");
      item.dataset.id = c.id;
      item.append(make("a"));
      item.firstChild.href = "#/c/" + c.id;
      this.items.set(c.id, item);
    }
    item.dataset.key = key;
    const name = make("span", "name", c.title ? shorten(c.title) : "Nothing said yet");
    const note = make("span", "note");
    name.dir = "auto";
    note.append(timeOf(c.updated), c.shared ? ", shared" : "", c.state === "open" ? "" : `, ${c.state}`);
    item.firstChild.replaceChildren(name, note);
    return item;
  }

  mark() {
    for (const item of this.list.children) {
      if (item.dataset.id === this.current) item.firstChild.setAttribute("aria-current", "page");
      else item.firstChild.removeAttribute("aria-current");
    }
  }

  // drop takes a conversation off the list.
  drop(id) {
    this.all = this.all.filter((c) => c.id !== id);
    this.show();
  }

  titleOf(id) { return this.all.find((c) => c.id === id)?.title; }
}
