// One message as it is shown. Whatever people and models say goes in as text; the
// one exception is an answer that the server has made HTML of.
import { nameOf, reasonOf, sameIdentity, timeOf } from "/words.js";

// The server sanitises what it calls html (C-30.13); this is the only place that
// takes it for markup.
const policy = globalThis.trustedTypes?.createPolicy("parley", { createHTML: (html) => html }) ?? { createHTML: (html) => html };

// Entry draws a record, or a message that is not one yet.
export class Entry {
  constructor(role, author) {
    this.element = make("li", "entry " + (role === "user" ? "user" : "agent"));
    this.head = make("header");
    this.mark = make("span", "mark");
    this.tools = make("span", "tools");
    this.body = make("div", "body text");
    this.body.dir = "auto";
    this.why = make("p", "why");
    this.why.hidden = true;
    this.head.append(make("span", "author", author), this.mark, this.tools);
    this.element.append(this.head, this.body, this.why);
  }

  say(text) { this.body.textContent = text; }

  // add shows words that follow those that are shown.
  add(text) {
    const last = this.body.lastChild;
    if (last) last.appendData(text);
    else this.body.append(text);
  }

  note(mark, why = "") {
    this.mark.textContent = mark;
    this.why.textContent = why;
    this.why.hidden = !why;
  }

  offer(name, act) {
    const button = make("button", "", name);
    button.type = "button";
    button.addEventListener("click", () => act(button));
    this.tools.append(button);
  }
}

// entryOf draws a record of the transcript for the person me, who may edit it if it
// is their own.
export function entryOf(record, me, edit) {
  const entry = new Entry(record.role, authorOf(record, me));
  entry.element.dataset.ord = record.ord ?? "";
  entry.element.dataset.turn = record.turn;
  entry.element.dataset.status = record.status;
  entry.head.insertBefore(timeOf(record.time), entry.mark);
  if (record.status === "restricted") {
    entry.element.classList.add("restricted");
    entry.say("Restricted: you are not cleared for what this has touched.");
    entry.note("restricted");
    return entry;
  }
  if (record.html) {
    entry.body.className = "body rich";
    entry.body.innerHTML = policy.createHTML(record.html);
  } else {
    entry.say(record.text ?? "");
  }
  const edits = record.editOf ? `edits the message of turn ${record.editOfTurn}` : "";
  switch (record.status) {
    case "interrupted": entry.note("interrupted"); break;
    case "rejected": entry.note("not taken", reasonOf(record)); break;
    case "failed": entry.note("failed", reasonOf(record)); break;
    default: entry.note(edits || (record.role === "assistant" && !record.text ? "nothing was said" : ""));
  }
  if (record.text) entry.offer("Copy", (button) => copy(button, record.text));
  if (record.role === "user" && record.status === "accepted" && sameIdentity(record.asker, me)) entry.offer("Edit", () => edit(record));
  return entry;
}

function authorOf({ role, asker }, me) {
  if (role === "notice") return "Notice";
  if (role !== "user") return "Agent";
  if (!asker) return "Somebody";
  return sameIdentity(asker, me) ? "You" : nameOf(asker, me);
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}
