// Where a message is written: Enter sends, Shift and Enter begins a line.

const $ = (id) => document.getElementById(id);

// composes reports whether a key belongs to a word that is being composed. Safari
// sends the Enter that ends it when the composition is over, as key 229.
const composes = (e) => e.isComposing || e.keyCode === 229;

export class Composer {
  // send(text, editOf) is called with what is to be said, stop() for an answer that
  // is to end.
  constructor({ send, stop }) {
    Object.assign(this, { text: $("text"), edited: null, drafts: new Map(), id: "" });
    this.text.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && !e.shiftKey && !composes(e)) { e.preventDefault(); this.submit(send); }
      if (e.key === "Escape" && this.edited) this.edit(null);
    });
    this.text.addEventListener("input", () => { this.sent = false; this.advise(""); this.fit(); });
    $("composer").addEventListener("submit", (e) => { e.preventDefault(); this.submit(send); });
    $("editing").querySelector("button").addEventListener("click", () => this.edit(null));
    $("stop").addEventListener("click", stop);
  }

  // show is for another conversation, in which a text may have been begun.
  show(id) {
    this.edit(null);
    this.drafts.set(this.id, this.text.value);
    this.id = id;
    this.draft(this.drafts.get(id) ?? "");
    this.sent = false;
    this.stoppable(false);
    this.hint("");
    this.close("");
  }

  // renamed is for the first message of a new conversation: it has an id now.
  renamed(id) { this.id = id; }

  submit(send) {
    const text = this.text.value;
    if (!text.trim()) return this.advise(this.sent ? "" : "Write something first."); // twice is once
    this.sent = true;
    const editOf = this.edited?.ord;
    if (this.edited) this.edit(null);
    else this.draft("");
    send(text, editOf);
  }

  // edit begins to edit a message of the person's, or ends it; what was begun
  // before comes back then.
  edit(record) {
    if (!record && !this.edited) return;
    if (!this.edited) this.begun = this.text.value;
    this.edited = record;
    $("editing").hidden = !record;
    $("editing").firstChild.textContent = record ? `You edit your message of turn ${record.turn}: it is said anew at the end.` : "";
    this.draft(record ? record.text : this.begun);
    this.text.focus();
  }

  // draft puts a text into the field.
  draft(text) {
    this.text.value = text;
    this.advise("");
    this.fit();
  }

  advise(text) { $("advice").textContent = text; }

  // hint says what sending does, where that is not plain.
  hint(text) { $("advice").dataset.hint = text; }

  // stoppable shows whether there is an answer that the person may stop.
  stoppable(yes) {
    if (!yes && document.activeElement === $("stop")) this.text.focus();
    $("stop").hidden = !yes;
  }

  // close says why nothing can be said here; "" opens it again.
  close(why) {
    this.text.disabled = $("send").disabled = Boolean(why);
    this.text.placeholder = why || "Message";
    if (why) this.advise(why);
  }

  fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.text.style.height = "auto";
    this.text.style.height = this.text.scrollHeight + 2 + "px";
  }
}
