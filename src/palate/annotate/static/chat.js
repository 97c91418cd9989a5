import { NotDone, newKey, pause, post, send, state, status, unlessSilent } from "/static/sending.js";

const $ = (id) => document.getElementById(id);
const turns = $("turns"), box = $("message"), again = $("again");
const DRAFT = `draft ${state.chat}`, TOLD = `told ${state.chat}`;
const touch = matchMedia("(pointer: coarse)").matches;
let version = state.version, waiting = 0, writing = false, queue = Promise.resolve();

const say = (text) => { status.textContent = text; };
const rateable = () => [...turns.querySelectorAll("li[data-rateable][data-turn]")];
const isRated = (turn) => turn.querySelector(".score[aria-pressed=true]") !== null;
const copy = (id) => $(id).content.firstElementChild.cloneNode(true);

// One change at a time: each names the version that the one before it made.
function act(kind, fields) {
  const key = newKey();
  waiting += 1;
  const run = async () => {
    say(state.words.saving);
    const body = { key, version, ...fields };
    try {
      const trouble = (code) => say(code === 429 ? state.words.too_fast : state.words.not_saved);
      const done = await send(`/chats/${state.chat}/${kind}`, body, trouble);
      version = Math.max(version, done.version);
      say(state.words.saved);
      return done;
    } finally {
      waiting -= 1;
    }
  };
  const result = queue.then(run);
  queue = result.catch(() => {});
  return result.catch(refused);
}

function refused(error) {
  if (!(error instanceof NotDone)) throw error;
  if (["changed", "forged", "gone", "closed", "not_now"].includes(error.problem)) {
    startOver(error.message);
  } else {
    say(error.message || state.words.broken);
  }
  return null;
}

// The page is loaded anew with what the server holds; what was typed stays.
function startOver(told) {
  waiting = 0;
  sessionStorage.setItem(TOLD, told || "");
  location.reload();
}

// --- ratings ---------------------------------------------------------------------------------

function mark(turn, focus = true) {
  for (const one of turns.querySelectorAll("[aria-current]")) one.removeAttribute("aria-current");
  if (!turn) return;
  turn.setAttribute("aria-current", "true");
  if (focus) turn.focus({ preventScroll: true });
  turn.scrollIntoView({ block: "nearest" });
}

const marked = () => turns.querySelector("[aria-current]");

function next(turn) {
  const all = rateable();
  const rest = all.slice(all.indexOf(turn) + 1);
  return rest.find((one) => !isRated(one)) || null;
}

async function rate(turn, score) {
  const before = turn.querySelector(".score[aria-pressed=true]");
  if (before && before.dataset.score === String(score)) return moveOn(turn);
  for (const one of turn.querySelectorAll(".score")) {
    one.setAttribute("aria-pressed", String(one.dataset.score === String(score)));
  }
  moveOn(turn);
  const done = await act("rate", { turn: Number(turn.dataset.turn), satisfaction: score });
  if (done !== null) return;
  for (const one of turn.querySelectorAll(".score")) {
    one.setAttribute("aria-pressed", String(one === before));
  }
}

function moveOn(turn) {
  const follows = next(turn);
  if (follows) mark(follows);
  else if (box && !box.disabled && !touch) box.focus({ preventScroll: true });
}

turns.addEventListener("click", (event) => {
  const button = event.target.closest("button"), turn = event.target.closest("li.turn");
  if (!turn) return;
  if (!button) { if (turn.matches("[data-rateable][data-turn]")) mark(turn, false); return; }
  if (button.matches(".score") && turn.dataset.turn) rate(turn, Number(button.dataset.score));
  if (button.matches(".save-note")) saveNote(turn);
  if (button.matches(".regenerate")) regenerate(turn);
  if (button.matches("button.edit")) edit(turn);
});

function saveNote(turn) {
  const note = turn.querySelector(".note").value;
  return act("rate", { turn: Number(turn.dataset.turn), note });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("textarea, input, dialog")) return;
  const turn = marked();
  if (/^[1-5]$/.test(event.key) && turn) {
    event.preventDefault();
    // A key that is held down rates one reply, not all that follow.
    if (!event.repeat) rate(turn, Number(event.key));
  } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const all = rateable(), at = all.indexOf(turn) + (event.key === "ArrowUp" ? -1 : 1);
    if (all[at]) { event.preventDefault(); mark(all[at]); }
  }
});

// --- talking ---------------------------------------------------------------------------------

function refresh() {
  const all = [...turns.querySelectorAll("li.turn")], last = all.at(-1);
  const own = all.filter((one) => one.matches(".user")).at(-1);
  const may = state.open && state.rewind && !writing;
  for (const one of turns.querySelectorAll("button.regenerate")) {
    one.hidden = !(may && one.closest("li") === last && last.dataset.turn);
  }
  for (const one of turns.querySelectorAll("button.edit")) {
    one.hidden = !(may && one.closest("li") === own && own.dataset.turn);
  }
  if (box) $("send").disabled = box.disabled || writing || !again.hidden;
}

// A change that a reply follows: until that is there, nothing else of its kind is offered.
async function actThenReply(kind, fields) {
  writing = true;
  refresh();
  const done = await act(kind, fields);
  if (done === null) {
    writing = false;
    refresh();
  }
  return done;
}

async function talk(text) {
  const done = await actThenReply("say", { text });
  if (done === null) return;
  addOwn(done.turn, text);
  box.value = "";
  sessionStorage.removeItem(DRAFT);
  await reply();
}

function addOwn(id, text) {
  const turn = copy("a-message");
  turn.dataset.turn = id;
  turn.querySelector(".said").textContent = text;
  turns.append(turn);
  turn.scrollIntoView({ block: "end" });
}

async function reply() {
  again.hidden = true;
  writing = true;
  const turn = copy("a-reply");
  const tools = turn.querySelector(".tools");
  tools.hidden = true;
  turn.setAttribute("aria-busy", "true");
  turns.parentElement.setAttribute("aria-busy", "true");
  turns.append(turn);
  refresh();
  say(state.words.writing);
  const end = await followed(turn.querySelector(".said"));
  turns.parentElement.removeAttribute("aria-busy");
  turn.removeAttribute("aria-busy");
  writing = false;
  if (end.done) {
    version = Math.max(version, end.done.version);
    turn.dataset.turn = end.done.turn;
    tools.hidden = false;
    if (end.cut) tools.before(copy("a-cut"));
    say(state.words.reply_there);
    mark(turn, !box || !box.value);
  } else {
    turn.remove();
    say(end.said);
    again.hidden = false;
    again.focus();
  }
  refresh();
}

// Follows a reply to its end; where the line is cut, it is taken up again: the server writes on.
async function followed(said) {
  for (let attempt = 0; attempt < 6; attempt += 1) {
    try {
      const response = await post(`/chats/${state.chat}/reply`, {});
      if (response.status === 409 || response.status === 404) {
        startOver("");
        return new Promise(() => {});
      }
      if (response.status === 429 || response.status >= 500) throw new Error("later");
      if (!response.ok) return { said: (await response.json()).said };
      const end = await read(response.body, said);
      if (end && end.problem === "changed") startOver(end.said);
      if (end) return end;
    } catch { /* tried again below */ }
    say(state.words.not_saved);
    await pause(1000 * 2 ** attempt);
  }
  return { said: state.words.model };
}

async function read(stream, said) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", text = "";
  for (;;) {
    const { value, done } = await unlessSilent(reader.read(), () => reader.cancel());
    if (done) return null;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const event = JSON.parse(line);
      if (event.done || event.problem) return event;
      if (event.text === undefined) continue;
      const atEnd = innerHeight + scrollY >= document.body.scrollHeight - 80;
      text = event.anew ? event.text : text + event.text;
      said.textContent = text;
      if (atEnd) said.scrollIntoView({ block: "end" });
    }
  }
}

async function regenerate(turn) {
  const done = await actThenReply("regenerate", { turn: Number(turn.dataset.turn) });
  if (done === null) return;
  turn.remove();
  await reply();
}

function edit(turn) {
  if (turn.querySelector("form")) return;
  const form = copy("an-edit"), field = form.querySelector("textarea");
  field.value = turn.querySelector(".said").textContent;
  form.querySelector(".cancel").addEventListener("click", () => form.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text || writing) return;
    const done = await actThenReply("edit", { turn: Number(turn.dataset.turn), text });
    if (done === null) return;
    while (turn.nextElementSibling) turn.nextElementSibling.remove();
    turn.remove();
    addOwn(done.turn, text);
    await reply();
  });
  turn.append(form);
  field.focus();
}

// --- leaving ---------------------------------------------------------------------------------

const leave = $("leave"), dialog = $("leaving");
if (leave) {
  leave.addEventListener("click", () => {
    const open = rateable().filter((one) => !isRated(one)).length;
    $("unrated").hidden = open === 0;
    $("unrated").textContent = state.words.leave_unrated.replace("{count}", open);
    $("farewell").hidden = !(box && box.value.trim());
    dialog.returnValue = "";
    dialog.showModal();
  });
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue !== "leave") return;
    const farewell = box ? box.value.trim() : "";
    const done = await act("leave", { farewell });
    if (done === null) return;
    sessionStorage.removeItem(DRAFT);
    location.reload();
  });
}

// --- the page --------------------------------------------------------------------------------

if (box) {
  box.value = sessionStorage.getItem(DRAFT) || "";
  box.addEventListener("input", () => sessionStorage.setItem(DRAFT, box.value));
  box.addEventListener("keydown", (event) => {
    // Not while an input method composes: its Enter takes a Chinese word over, and sends nothing.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || touch) return;
    event.preventDefault();
    $("composer").requestSubmit();
  });
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (text && !$("send").disabled) talk(text);
  });
}

again.addEventListener("click", () => reply());
addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

say(sessionStorage.getItem(TOLD) || "");
sessionStorage.removeItem(TOLD);
const first = rateable().find((one) => !isRated(one));
if (first) mark(first);
else if (turns.lastElementChild) turns.lastElementChild.scrollIntoView({ block: "nearest" });
if (state.awaits) reply();
else if (!first && box && !touch) box.focus({ preventScroll: true });
refresh();
