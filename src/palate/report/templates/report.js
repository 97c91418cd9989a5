"use strict";
/* Shows conversations. Every text from a card, chat or model becomes a text node: nothing here
   parses markup. A conversation's JSON stays unread in its data block until it is opened. */
(() => {
  const PAGE = 100;
  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const { cells, words } = read("index");
  const form = byId("filter"), dialog = byId("transcript"), body = byId("transcript-body");
  const rows = byId("rows"), more = byId("more");
  cells.forEach((cell, number) => { cell.number = number; });
  const byKey = new Map(cells.map((cell) => [cell.key, cell]));
  const labels = new Map(Object.entries(words.dimensions));
  const names = new Map(Object.entries(words.cards));
  let found = [], shown = 0, current = null, opener = null;

  const el = (tag, className, ...children) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const said = (tag, className, text) => {
    const made = el(tag, className, text);
    made.dir = "auto";
    return made;
  };
  const bdi = (text) => el("bdi", "", text);
  const score = (value) => (value === null || value === undefined ? "n/a" : value.toFixed(2));
  const plain = (identifier) => identifier.replaceAll("_", " ");
  const nameOf = (cell) => `${cell.user} × ${cell.card} × ${cell.candidate}, repetition ${cell.repetition}`;
  const linkTo = (cell) => `#cell=${encodeURIComponent(cell.key.toWellFormed ? cell.key.toWellFormed() : cell.key)}`;

  /* The list */
  const fillSelects = () => {
    for (const field of ["user", "candidate", "card", "end"]) {
      const values = [...new Set(cells.map((cell) => cell[field]))];
      form.elements[field].append(...values.map((value) => new Option(field === "end" ? plain(value) : value, value)));
    }
  };
  const search = () => {
    const wanted = ["user", "candidate", "card", "end"].map((field) => [field, form.elements[field].value]);
    found = cells.filter((cell) => wanted.every(([field, value]) => value === "" || cell[field] === value));
    const order = form.elements.order.value;
    if (order === "unscored") found.sort((a, b) => b.unscored - a.unscored);
    else if (order !== "plan") found.sort((a, b) => (a[order] ?? 9) - (b[order] ?? 9));
    rows.replaceChildren();
    shown = 0;
    showMore();
    byId("found").textContent = `${found.length} of ${cells.length} conversations`;
  };
  const showMore = () => {
    rows.append(...found.slice(shown, shown + PAGE).map(row));
    shown = Math.min(shown + PAGE, found.length);
    more.hidden = shown >= found.length;
    more.textContent = `Show more (${found.length - shown} left)`;
  };
  const row = (cell) => {
    const link = el("a", "", bdi(cell.user), " × ", bdi(cell.card), " × ", bdi(cell.candidate), ` · ${cell.repetition}`);
    link.href = linkTo(cell);
    const head = el("th", "", link);
    head.scope = "row";
    const notes = cell.flags.map(plain);
    if (cell.unscored) notes.push(`${cell.unscored} unscored`);
    if (cell.failures) notes.push(`${cell.failures} failed`);
    const bad = cell.end !== "quit" && cell.end !== "depth_limit";
    return el("tr", "", head, el("td", bad ? "bad" : "", plain(cell.end)), el("td", "num", String(cell.replies)),
      ...["personal", "generic", "session"].map((track) => el("td", "num", score(cell[track]))),
      said("td", "noted", notes.join(", ")));
  };

  /* One transcript */
  const digits = (judgement) => {
    const list = el("dl", "scores");
    for (const [id, value] of Object.entries(judgement.scores ?? {})) {
      const label = labels.get(id);
      const name = label === undefined ? id : `${id} ${label}`;
      list.append(el("div", "", el("dt", "", bdi(name)), el("dd", value === null ? "missing" : "", value === null ? "n/a" : String(+value.toFixed(2)))));
    }
    return list.childElementCount > 1 ? list : null;
  };
  const facts = (judgement) => {
    const parts = [`judge ${judgement.judge}`];
    if (judgement.judge_revision) parts.push(`served as ${judgement.judge_revision}`);
    parts.push(`rubric ${judgement.rubric.slice(0, 12)}`, `prompt ${judgement.prompt.slice(0, 12)}`);
    parts.push(judgement.reaction_shown ? "reaction shown" : "reaction not shown");
    if (judgement.score_kind === "expected") parts.push("expected score");
    if (judgement.judge_overall !== undefined) parts.push(`the judge’s own overall ${judgement.judge_overall}, not used`);
    if (judgement.attempts > 1) parts.push(`${judgement.attempts} attempts`);
    if (judgement.ignored) parts.push(`ignored: ${judgement.ignored.join(", ")}`);
    const line = said("p", "fine", parts.join(" · "));
    line.title = `rubric ${judgement.rubric}\nprompt ${judgement.prompt}`;
    return line;
  };
  const verdict = (judgement) => {
    const unscored = judgement.overall === undefined || judgement.overall === null;
    const head = el("p", "verdict-head", el("span", `track ${judgement.track}`, judgement.track), " ",
      el("strong", unscored ? "missing" : "", unscored ? "unscored" : score(judgement.overall)));
    const box = el("section", `verdict ${judgement.track}`, head);
    box.ariaLabel = `${judgement.track} verdict`;
    if (unscored) box.append(said("p", "bad", judgement.unscored ?? "no reason recorded"));
    const scores = digits(judgement);
    if (scores) box.append(scores);
    if (judgement.reason) box.append(said("p", "said reason", judgement.reason));
    if (judgement.flags) box.append(said("p", "flags", judgement.flags.map(plain).join(", ")));
    const detail = el("details", "", el("summary", "", "How it was judged"), facts(judgement));
    if (judgement.raw) detail.append(el("p", "fine", "The judge’s text:"), said("pre", "said", judgement.raw));
    box.append(detail);
    return box;
  };
  const turn = (message, who, label, verdicts) => {
    const box = el("div", "message", el("p", "speaker", bdi(who), label ? el("small", "", ` ${label}`) : null), said("p", "said", message.text));
    const marks = [...(message.flags ?? []).map(plain)];
    if (message.finish === "length") marks.push("cut at the token limit");
    if (message.finish === "refused") marks.push("blocked by the provider");
    if (marks.length) box.append(said("p", "flags", marks.join(", ")));
    return el("li", `turn ${message.speaker}`, box, verdicts.length ? el("div", "verdicts", ...verdicts.map(verdict)) : null);
  };
  const ending = (end) => ({
    quit: words.user_left,
    depth_limit: "The depth limit was reached.",
    simulator_empty: "The simulated user sent nothing, and the session ended here.",
    candidate_empty: "The candidate sent nothing, and the session ended here.",
    candidate_blocked: "The candidate’s provider blocked the reply, and the session ended here.",
    open: "This conversation is open: the next `palate run` takes it up here.",
  })[end] ?? plain(end);
  const transcript = (cell, record) => {
    const list = el("ol", "turns"), character = names.get(cell.card) ?? cell.card;
    if (record.opening) list.append(turn({ speaker: "character", text: record.opening }, character, "opening, part of the card, never scored", []));
    let reply = 0;
    for (const message of record.messages) {
      const byUser = message.speaker === "user";
      const verdicts = byUser ? [] : record.judgements.filter((judgement) => judgement.reply === reply);
      list.append(turn(message, byUser ? cell.user : character, byUser ? "" : `reply ${++reply}, by ${cell.candidate}`, verdicts));
    }
    list.append(el("li", "ending", ending(record.end)));
    return list;
  };
  const sums = (cell, record) => {
    const [prompt, completion, cached] = record.usage;
    const parts = ["personal", "generic", "session"].map((track) => `${track} ${score(cell[track])}`);
    parts.push(`ended by ${plain(record.end)}`, `${cell.replies} replies`);
    if (prompt + completion) parts.push(`${prompt} prompt tokens (${cached} cached), ${completion} generated`);
    return el("p", "sums", parts.join(" · "));
  };
  const render = (cell) => {
    const record = read(`cell-${cell.number}`);
    const parts = [sums(cell, record), transcript(cell, record)];
    const whole = record.judgements.filter((judgement) => judgement.track === "session");
    const stray = record.judgements.filter((judgement) => judgement.track !== "session" && (judgement.reply === null || judgement.reply >= cell.replies));
    if (whole.length) parts.push(el("h3", "", "The whole conversation"), ...whole.map(verdict));
    if (stray.length) parts.push(el("h3", "", "Verdicts without a reply"), ...stray.map(verdict));
    if (record.failures.length) {
      parts.push(el("h3", "", "Calls that failed"), el("ul", "failures",
        ...record.failures.map((failure) => said("li", "said", `${failure.role}: ${failure.error}`))));
    }
    body.replaceChildren(...parts);
  };

  /* Where the address says we are */
  const open = (cell) => {
    current = cell;
    render(cell);
    byId("transcript-title").textContent = nameOf(cell);
    const place = found.indexOf(cell);
    byId("previous").disabled = place <= 0;
    byId("next").disabled = place < 0 || place >= found.length - 1;
    if (!dialog.open) {
      opener = document.activeElement;
      dialog.showModal();
    }
    dialog.scrollTop = body.scrollTop = 0;
    byId("transcript-title").focus();
  };
  const step = (by) => {
    const next = found[found.indexOf(current) + by];
    if (next) location.replace(linkTo(next));
  };
  const route = () => {
    const hash = location.hash.slice(1);
    if (hash.startsWith("cell=")) {
      let key = hash.slice(5);
      try { key = decodeURIComponent(key); } catch { /* an address typed by hand: look for it as it is */ }
      const cell = byKey.get(key) ?? cells.find((one) => linkTo(one) === `#${hash}`);
      if (cell) return open(cell);
    }
    if (dialog.open) dialog.close();
    if (hash.startsWith("cells?")) {
      const asked = new URLSearchParams(hash.slice(6));
      for (const field of ["user", "candidate", "card", "end"]) {
        const control = form.elements[field];
        control.value = asked.get(field) ?? "";
        if (control.selectedIndex < 0) control.value = "";
      }
      search();
      byId("cells").scrollIntoView();
      byId("found").focus({ preventScroll: true });
    }
  };

  fillSelects();
  search();
  form.addEventListener("change", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", showMore);
  byId("close").addEventListener("click", () => dialog.close());
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  dialog.addEventListener("close", () => {
    body.replaceChildren();
    if (location.hash.startsWith("#cell=")) history.replaceState(null, "", "#cells");
    if (opener) opener.focus({ preventScroll: true });
  });
  addEventListener("hashchange", route);
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
  route();
})();
