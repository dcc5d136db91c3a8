// The page: who is there, which conversation is open, and what happens to both.
import { ask, conversation, whenGone } from "/api.js";
import { Outbox } from "/outbox.js";
import { Talk } from "/talk.js";
import { Threads } from "/threads.js";
import { nameOf, sameIdentity, wordsOf } from "/words.js";

const $ = (id) => document.getElementById(id);
const tabs = new BroadcastChannel("parley"); // "list", "here" and "gone" go to the other tabs
const how = "The command “parley link” prints a link that opens this page";

let threads, talk, me, retry;

// takeCode takes the code of a link out of the address, so that neither the
// history nor a bookmark keeps it.
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}

// enter opens a session with the code of a link, or goes on with the one that is
// open.
async function enter() {
  clearTimeout(retry);
  const code = takeCode();
  let refused = "";
  try {
    if (code) {
      const { identity } = await ask("POST", "/session", { code });
      tabs.postMessage("here");
      return open(identity);
    }
  } catch (err) {
    refused = err.status === 401 ? "This link is used up or too old. " : wordsOf(err) + " ";
  }
  try {
    open((await ask("GET", "/session")).identity);
  } catch (err) {
    if (err.status === 401) return shut(`${refused}You are not logged in. ${how}.`);
    shut(`${wordsOf(err)} Trying again …`);
    retry = setTimeout(enter, 3000);
  }
}

// shut shows why the room is closed.
function shut(text) {
  talk?.leave();
  $("room").hidden = true;
  $("door").hidden = false;
  $("door-text").textContent = text;
  $("door").focus();
}

// open shows the room to who is there. Nobody meets in it what another one left.
function open(identity) {
  if (me && !sameIdentity(me, identity)) return location.reload();
  if (me && !$("room").hidden) return;
  me = identity;
  $("who").textContent = nameOf(identity);
  $("door").hidden = true;
  $("room").hidden = false;
  if (!talk) build();
  go();
}

// build makes the parts of the room.
function build() {
  const changed = () => { threads.load(); tabs.postMessage("list"); };
  threads = new Threads($("list"), $("list-note"), $("search"), () => talk.name(threads.titleOf(talk.room.id)));
  talk = new Talk(me, new Outbox(me, changed), {
    started: (id) => { history.replaceState(null, "", "#/c/" + id); threads.load(id); },
    said: changed,
    over: (id) => threads.drop(id),
  });
}

// share starts a conversation in which others may take part, and asks who.
async function share() {
  if ($("new-shared").disabled) return;
  $("new-shared").disabled = true;
  try {
    const { id } = await ask("POST", conversation(), { shared: true });
    history.pushState(null, "", "#/c/" + id);
    tabs.postMessage("list");
    go();
    talk.stands({ shared: true });
    talk.people.open();
  } catch (err) {
    $("list-note").textContent = err.reason === "not-permitted" ? "You may not start shared conversations." : wordsOf(err);
  }
  $("new-shared").disabled = false;
}

// go shows the conversation that the address names, and a new one where it names
// none.
function go() {
  if (new URLSearchParams(location.hash.slice(1)).has("code")) return enter();
  if ($("room").hidden) return;
  const id = location.hash.match(/^#\/c\/([A-Za-z0-9_.-]{1,128})$/)?.[1] ?? "";
  showMenu(false);
  talk.open(id, threads.titleOf(id));
  threads.load(id);
}

// showMenu shows the conversations where there is no room for both.
function showMenu(shown) {
  $("room").classList.toggle("menu", shown);
  $("menu").setAttribute("aria-expanded", String(shown));
  $("talk").inert = shown;
  if (!shown && narrow.matches && $("threads").contains(document.activeElement)) $("scroll").focus({ preventScroll: true });
}

const narrow = matchMedia("(max-width: 46rem)");
const menuShown = () => $("room").classList.contains("menu");

whenGone(() => { if (!$("room").hidden) shut(`Your session is over. ${how} again.`); });
tabs.addEventListener("message", ({ data }) => {
  if (data === "list") threads?.load();
  else enter(); // somebody has come or gone
});
addEventListener("hashchange", go);
addEventListener("beforeunload", (e) => { if (talk?.outbox.unsent()) e.preventDefault(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) threads?.load(); });
document.addEventListener("keydown", (e) => { if (e.key === "Escape" && menuShown()) { showMenu(false); $("menu").focus(); } });
narrow.addEventListener("change", () => showMenu(false));
$("menu").addEventListener("click", (e) => { e.stopPropagation(); showMenu(true); $("new").focus(); });
$("room").addEventListener("click", (e) => { if (menuShown() && (!e.target.closest("#threads") || e.target.closest("a"))) showMenu(false); });
$("skip").addEventListener("click", () => { showMenu(false); $("text").focus(); });
$("new").addEventListener("click", () => { if (location.hash) location.hash = ""; else go(); $("text").focus(); });
$("new-shared").addEventListener("click", share);
$("leave").addEventListener("click", async () => {
  try {
    await ask("DELETE", "/session");
  } catch (err) {
    if (err.status !== 401) return void ($("list-note").textContent = wordsOf(err));
  }
  talk.outbox.forget();
  shut(`You are logged out. ${how} again.`);
  tabs.postMessage("gone");
});
enter();
