// Who takes part in a shared conversation: how many there are, and a panel that
// lists them and lets who manages the conversation add and remove others.
import { ask, conversation } from "/api.js";
import { make } from "/entry.js";
import { nameOf, sameIdentity, timeOf, wordsOf } from "/words.js";

const $ = (id) => document.getElementById(id);

export class People {
  // me is who looks. changed() is called when the set was read.
  constructor(me, changed) {
    Object.assign(this, { me, changed, id: "", all: [], manages: false });
    this.panel = $("panel");
    $("people").addEventListener("click", () => this.open());
    $("panel-close").addEventListener("click", () => this.panel.close());
    this.panel.addEventListener("click", (e) => { if (e.target === this.panel) this.panel.close(); }); // beside it
    $("add").addEventListener("submit", (e) => { e.preventDefault(); this.add(); });
    $("tenant").hidden = me.tenant === undefined;
  }

  // of is for another conversation, "" for one that is not shared.
  of(id) {
    if (id === this.id) return;
    Object.assign(this, { id, all: [], manages: false });
    if (this.panel.open) this.panel.close();
    this.show();
    if (id) this.load();
  }

  // met takes note of who has said something; the set is read anew where they are
  // not of it.
  met(who) {
    if (this.id && who && !this.all.some((p) => sameIdentity(p.identity, who))) this.load();
  }

  // load reads the set. What goes wrong is told in the panel.
  async load() {
    const id = this.id;
    try {
      const { participants, manages } = await ask("GET", conversation(id) + "/participants");
      if (id !== this.id) return;
      [this.all, this.manages] = [participants ?? [], manages === true];
      this.show();
      this.changed();
    } catch (err) {
      if (id === this.id) $("panel-note").textContent = wordsOf(err);
    }
  }

  async open() {
    $("panel-note").textContent = "";
    $("tenant").value = this.me.tenant ?? "";
    this.panel.showModal();
    await this.load();
    if (this.manages && document.activeElement === $("panel-close")) $("actor").focus();
  }

  // show draws the set, unless it is drawn already: a button that is just being
  // pressed stays.
  show() {
    const drawn = JSON.stringify([this.id, this.all, this.manages]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    $("people").hidden = !this.id;
    $("people").textContent = this.all.length === 1 ? "Only you" : this.all.length ? `${this.all.length} people` : "People";
    $("add").hidden = !this.manages;
    $("people-list").replaceChildren(...this.all.map((p) => this.draw(p)));
  }

  draw({ identity, since, owner }) {
    const item = make("li");
    const mine = sameIdentity(identity, this.me);
    const name = make("span", "name", mine ? "You" : nameOf(identity, this.me));
    const note = make("span", "note", owner ? "began it " : "since ");
    note.append(timeOf(since));
    item.append(name, note);
    if (!this.manages || owner) return item;
    const button = make("button", "quiet", "Remove");
    button.type = "button";
    button.setAttribute("aria-label", `Remove ${name.textContent}`);
    button.addEventListener("click", () => this.change("DELETE", identity));
    item.append(button);
    return item;
  }

  async add() {
    const actor = $("actor").value.trim(), tenant = $("tenant").value.trim();
    if (!actor) return void ($("panel-note").textContent = "Write a name first.");
    if (await this.change("POST", { actor, ...(!$("tenant").hidden && tenant && { tenant }) })) $("actor").value = "";
    $("actor").focus();
  }

  // change adds or removes somebody, and reports whether that was done.
  async change(method, identity) {
    $("panel-note").textContent = "";
    try {
      await ask(method, conversation(this.id) + "/participants", identity);
      $("panel-note").textContent = `${nameOf(identity, this.me)} ${method === "POST" ? "takes part now." : "takes no part any more."}`;
      await this.load();
      if (!this.panel.contains(document.activeElement)) $("panel-close").focus();
      return true;
    } catch (err) {
      $("panel-note").textContent = wordsOf(err);
      return false;
    }
  }
}
