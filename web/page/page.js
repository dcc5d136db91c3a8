"use strict";

const who = document.getElementById("who");
const until = document.getElementById("until");
const leave = document.getElementById("leave");

// takeCode takes the code of a link out of the address, so that neither the
// history nor a bookmark keeps it.
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname);
  return code;
}

function ask(method, body) {
  return fetch("/session", {
    method, body: body && JSON.stringify(body), credentials: "same-origin", cache: "no-store",
    headers: body ? { "Content-Type": "application/json" } : {},
  });
}

function show(text, expires, present) {
  who.textContent = text;
  until.textContent = expires ? "Until " + new Date(expires).toLocaleString() + "." : "";
  leave.hidden = !present;
}

function name({ actor, tenant, onBehalfOf }) {
  let text = actor;
  if (tenant !== undefined) text += " of " + tenant;
  if (onBehalfOf !== undefined) text += ", on behalf of " + onBehalfOf;
  return text;
}

// enter opens a session with a code, or looks for the one that is open.
async function enter() {
  const code = takeCode();
  try {
    let answer = code ? await ask("POST", { code }) : await ask("GET");
    const refused = code && !answer.ok ? answer.status : 0;
    if (refused) answer = await ask("GET"); // an older session may be open
    if (answer.ok) {
      const { identity, expires } = await answer.json();
      show((refused ? "The link was not taken. " : "") + "You are " + name(identity) + ".", expires, true);
    } else if (refused === 401) {
      show("This link is used up or too old. Ask for another one.");
    } else if (refused === 429) {
      show("Too many tries. Wait a minute, then open the link again.");
    } else if (answer.status === 401) {
      show("You are not logged in. The command “parley link” prints a link to this page.");
    } else {
      show("The server cannot say who you are. Try again later.");
    }
  } catch {
    show("The server cannot be reached. Try again later.");
  }
}

leave.addEventListener("click", async () => {
  try {
    const answer = await ask("DELETE");
    if (answer.ok || answer.status === 401) show("You are logged out.");
    else show("You are still logged in. Try again later.", "", true);
  } catch {
    show("The server cannot be reached, and you are still logged in.", "", true);
  }
});

addEventListener("hashchange", () => { if (location.hash) enter(); });
enter();
