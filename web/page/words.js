// What the page says of things that have only a code.

const reasons = {
  "text-empty": "There is nothing in the message.",
  "text-too-long": "The message is too long. Send it in pieces.",
  "edit-of-invalid": "That message cannot be edited.",
  "edit-invalid": "Not taken: only your own messages can be edited that the agent still has before it.",
  "prompt-too-large": "Not taken: it does not fit into what the model can read at once. Send it in pieces.",
  "malformed": "Not taken: the message was damaged on its way.",
  "unauthenticated": "Not taken: it was not signed by this server.",
  "replayed": "Not taken: it was sent before.",
  "stale": "Not taken: it is too old. Send it again.",
  "not-a-participant": "Not taken: its author takes no part in this conversation.",
  "model-error": "The model failed.",
  "denied": "The agent was not allowed to do what it needed.",
  "turn-failed": "The answer failed.",
  "cancelled": "The answer was cancelled.",
  "not-permitted": "You are not allowed to do that here.",
};

// reasonOf says why a message was not taken, or has no answer.
export function reasonOf({ reason, errorId }) {
  const text = reasons[reason] ?? "It failed, and the server does not say why.";
  return errorId ? `${text} Error id: ${errorId}` : text;
}

// endOf says why nothing can be said in a conversation that is over.
export function endOf(state) {
  if (state === "failed") return "This conversation has failed and cannot go on.";
  if (state === "cancelled") return "This conversation was cancelled.";
  return "This conversation is closed.";
}

// wordsOf says what went wrong with a request, and what to do about it.
export function wordsOf(err) {
  if (reasons[err.reason]) return reasons[err.reason];
  if (err.status === 0) return "The server cannot be reached.";
  if (err.code === "InvalidParticipant") return "Nobody of this name can take part.";
  if (err.code === "TooManyParticipants") return "At most 100 people take part in a conversation.";
  if (err.code === "OwnerStays") return "Whose conversation it is stays in it.";
  if (err.status === 401) return "Your session is over.";
  if (err.status === 404) return "This conversation is not there, or is not yours.";
  if (err.status === 409) return endOf("closed");
  if (err.status === 413) return "The message is too long. Send it in pieces.";
  if (err.status === 403) return "The server does not take requests of this page at this address.";
  if (err.code === "QueueFull") return "Too many messages are waiting in this conversation. Try again when some are answered.";
  if (err.status === 429) return `Too many requests. Try again in ${err.after || 5} seconds.`;
  if (err.errorId) return `The server failed. Error id: ${err.errorId}`;
  if (err.status >= 500) return "The server takes no work just now.";
  return "Something went wrong.";
}

// shorten makes a title of a text. It holds something that can be seen, and nothing
// that turns the direction of what stands beside it.
export function shorten(text) {
  const plain = text.slice(0, 400).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "").replace(/\s+/g, " ");
  return /[^\p{C}\p{Z}\p{M}]/u.test(plain) ? [...plain].slice(0, 80).join("").trim() : "Conversation";
}

export function sameIdentity(a, b) {
  return Boolean(a && b) && a.actor === b.actor && a.tenant === b.tenant && a.onBehalfOf === b.onBehalfOf;
}

// nameOf is how a person is called; by one of their tenant without it.
export function nameOf({ actor, tenant, onBehalfOf }, me) {
  let text = actor;
  if (tenant !== undefined && tenant !== me?.tenant) text += " of " + tenant;
  if (onBehalfOf !== undefined) text += ", on behalf of " + onBehalfOf;
  return text;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

// timeOf is an element for a time: short to read, whole when pointed at.
export function timeOf(text) {
  const at = new Date(text);
  const element = document.createElement("time");
  element.dateTime = text;
  element.title = whole.format(at);
  element.textContent = at.toDateString() === new Date().toDateString() ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
  return element;
}
