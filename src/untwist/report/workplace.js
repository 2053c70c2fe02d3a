// ---- the place to work: a list of rows, a sheet for the one at hand, keys and buttons to decide ----

const ROW_HEIGHT = 54; // pixels, as in the style sheet
const ROWS_BEYOND = 8; // rows that are drawn above and below those that are seen
const SIGNS = { keep: "✓", relabel: "→", skip: "–" };
const STATES = { keep: "kept", relabel: "relabelled", skip: "skipped" };
const LINE_HEIGHT = 20; // pixels of the label, at least, that are in view where a row is
const KEYS_OFF = "untwist:keys-off"; // where the browser remembers that keys are switched off

/** Make an element: its attributes, then what is in it. Text stays text, whatever it says. */
function make(tag, attributes = {}, ...content) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) one.setAttribute(name, value === true ? "" : value);
  one.append(...content.filter((part) => part !== null));
  return one;
}

class Workplace {
  constructor(sheet, config) {
    Object.assign(this, { sheet, config, past: [], shown: [], at: 0, current: 0 });
    this.list = get("list");
    this.spacer = make("div", { role: "presentation" });
    this.list.append(this.spacer);
    this.decisions = new Decisions(config, () => this.refresh(), (words) => this.tell(words));
    this.decisions.known.then(() => this.begin());
  }

  /** Show the next row that is open; not before it is known which rows are. */
  begin() {
    const { config, sheet } = this;
    this.buttons = new Map([...get("work").querySelectorAll("button[aria-keyshortcuts]")].map((one) => [one.getAttribute("aria-keyshortcuts").toLowerCase(), one]));
    this.listen();
    get("kept").textContent = config.server === null ? "Decisions are kept in this browser only, until you save them: untwist apply then changes the labels." : "Decisions are written to the file as you make them.";
    this.switchKeys(!this.decisions.storage?.getItem(KEYS_OFF));
    get("work").hidden = false;
    get("plain").classList.add("printed");
    this.filter();
    this.open(this.shown.find((i) => this.state(i) === "open") ?? this.shown[0] ?? 0);
    this.drawPrint();
    if (config.server !== null && !location.hash) {
      history.scrollRestoration = "manual";
      this.goToWork();
    }
    setTimeout(() => (sheet.texts ??= joinTexts(sheet)), 200); // before somebody searches
  }

  // ---- what rows say ----

  record(i) {
    return this.decisions.all.get(this.sheet.row[i]);
  }

  state(i) {
    return this.record(i)?.decision ?? "open";
  }

  /** The class that R gives: what the row looks like, or of two classes the other one. */
  suggest(i) {
    const { given, like, classes } = this.sheet;
    if (like[i] !== given[i]) return like[i];
    return classes.length === 2 ? 1 - given[i] : null;
  }

  tell(words) {
    get("message").textContent = words;
    get("message").hidden = !words;
  }

  // ---- which rows, in which order ----

  filter() {
    const { sheet } = this;
    const notes = [...this.decisions.all].filter(([row, one]) => one.note && sheet.rank.has(row)).map(([row, one]) => [sheet.rank.get(row), one.note]);
    const found = search(sheet, get("words").value, notes);
    const [state, given, like, order] = ["state", "given", "like", "order"].map((id) => get(id).value);
    if (order !== this.order || !this.arranged) this.arranged = arrange(sheet, order);
    this.order = order;
    this.shown = this.arranged.filter(
      (i) =>
        found[i] &&
        (given === "" || sheet.given[i] === Number(given)) &&
        (like === "" || sheet.like[i] === Number(like)) &&
        (state === "" || this.state(i) === state || (state === "decided" && this.state(i) !== "open")),
    );
    this.at = this.shown.indexOf(this.current);
    this.spacer.style.height = `${this.shown.length * ROW_HEIGHT}px`;
    const all = sheet.n.toLocaleString("en");
    get("status").textContent = !this.shown.length ? "No row matches." : this.shown.length < sheet.n ? `${this.shown.length.toLocaleString("en")} of ${all} rows` : `${all} rows`;
    this.drawList();
    this.drawProgress();
  }

  /** Decisions have changed, here or elsewhere. */
  refresh() {
    this.filter();
    this.drawSheet();
    this.drawPrint();
  }

  // ---- moving ----

  open(i) {
    this.current = i;
    this.at = this.shown.indexOf(i);
    this.reveal();
    this.drawList();
    this.drawSheet();
    get("details").scrollTop = 0;
  }

  move(to) {
    if (!this.shown.length) return;
    this.open(this.shown[Math.max(0, Math.min(this.shown.length - 1, to))]);
  }

  /** Scroll the list, and not the page, so that the row at hand is seen. */
  reveal() {
    if (this.at < 0) return;
    const top = this.at * ROW_HEIGHT, height = this.list.clientHeight;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    else if (top + ROW_HEIGHT > this.list.scrollTop + height) this.list.scrollTop = top + ROW_HEIGHT - height;
  }

  // ---- deciding ----

  /** Decide on the row at hand, and go on to the next that is open. */
  decide(decision, label) {
    const i = this.current;
    if (!this.shown.length) return;
    if (!this.decisions.isGone) this.tell("");
    const next = this.shown.slice(this.at + 1).concat(this.shown.slice(0, Math.max(this.at, 0))).find((one) => this.state(one) === "open");
    this.change(i, { decision, label: this.config.classes[label], note: this.record(i)?.note ?? "" });
    if (next !== undefined) this.open(next);
  }

  change(i, decided) {
    const row = this.sheet.row[i];
    this.past.push([i, this.decisions.all.get(row) ?? null]);
    this.put(i, { ...decided, given: this.config.classes[this.sheet.given[i]], line: this.name(i), decided_at: new Date().toISOString() });
  }

  name(i) {
    return this.config.has_names ? String(this.sheet.name[i]) : "";
  }

  put(i, record) {
    this.decisions.put(this.sheet.row[i], record);
    this.refresh();
  }

  keep() {
    this.decide("keep", this.sheet.given[this.current]);
  }

  relabel(label) {
    if (label === null || label === undefined || label >= this.sheet.classes.length) return;
    if (label === this.sheet.given[this.current]) this.keep();
    else this.decide("relabel", label);
  }

  skip() {
    this.decide("skip", this.sheet.given[this.current]);
  }

  /** Take the last decision back; without one, that of the row at hand. */
  undo() {
    if (!this.past.length && !this.record(this.current)) return;
    const [i, before] = this.past.pop() ?? [this.current, null];
    this.put(i, before);
    this.open(i);
  }

  /** A note on an open row sets it aside: it is skipped until somebody decides. */
  writeNote() {
    const i = this.current, note = get("note").value.trim(), record = this.record(i);
    if (note === (record?.note ?? "")) return;
    this.change(i, { decision: record?.decision ?? "skip", label: record?.label ?? this.config.classes[this.sheet.given[i]], note });
  }

  // ---- drawing ----

  drawList() {
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW_HEIGHT) - ROWS_BEYOND);
    const last = Math.min(this.shown.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW_HEIGHT) + ROWS_BEYOND);
    const rows = [];
    for (let place = first; place < last; place++) rows.push(this.makeItem(this.shown[place], place));
    this.spacer.replaceChildren(...rows);
    if (this.at < 0) this.list.removeAttribute("aria-activedescendant");
    else this.list.setAttribute("aria-activedescendant", `item-${this.current}`);
  }

  makeItem(i, place) {
    const { sheet } = this, state = this.state(i), record = this.record(i);
    const target = record?.decision === "relabel" ? record.label : sheet.classes[sheet.like[i]];
    const words = STATES[state] ?? "open";
    const item = make(
      "div",
      { id: `item-${i}`, class: `item is-${state}`, role: "option", "aria-selected": String(i === this.current), "aria-posinset": place + 1, "aria-setsize": this.shown.length },
      make("span", { class: "sign", role: "img", "aria-label": words, title: words }, SIGNS[state] ?? ""),
      make("b", {}, String(sheet.name[i])),
      make("span", { class: "chance" }, formatWrong(sheet, i)),
      make("span", { class: "labels" }, `${sheet.classes[sheet.given[i]]} → ${target}`),
    );
    item.style.transform = `translateY(${place * ROW_HEIGHT}px)`;
    item.dataset.i = i;
    return item;
  }

  drawProgress() {
    const { sheet } = this;
    let reviewed = 0, wrong = 0, expected = 0, skipped = 0;
    for (let i = 0; i < sheet.n; i++) {
      const state = this.state(i);
      if (state === "skip") skipped++;
      if (state !== "keep" && state !== "relabel") continue;
      reviewed++;
      expected += sheet.wrong[i];
      if (state === "relabel") wrong++;
    }
    const number = (value) => value.toLocaleString("en");
    const hoped = sheet.found ? `expected ${number(Math.round(expected))}` : `expected 0 to ${number(Math.min(reviewed, sheet.most ?? reviewed))}${sheet.most < reviewed && sheet.most !== null ? " if errors do not depend on features" : ""}`;
    const found = reviewed ? [make("b", {}, `${number(wrong)} of ${number(reviewed)}`), ` ${wrong === 1 && reviewed === 1 ? "was" : "were"} wrong; ${hoped}`] : ["Nothing is decided yet"];
    const open = sheet.n - reviewed - skipped;
    get("yield").replaceChildren(...found, make("span", {}, ` · ${number(open)} open${skipped ? `, ${number(skipped)} skipped` : ""}`));
    Object.assign(get("done"), { max: sheet.n, value: reviewed + skipped });
    get("save").disabled = !this.decisions.all.size;
    get("undo").disabled = !this.past.length && !this.record(this.current);
  }

  drawSheet() {
    const { sheet, current: i } = this;
    const record = this.record(i), state = this.state(i), suggested = this.suggest(i);
    const source = sheet.source && sheet.source.values[sheet.source.codes[i]];
    const decided = state === "open" ? null : make("p", { class: `decided is-${state}` }, `${SIGNS[state]} ${STATES[state]}`, state === "relabel" ? ` to ${record.label}` : "");
    get("head").replaceChildren(
      make("p", { class: "eyebrow" }, `${this.config.row_name} ${sheet.name[i]}`, source ? ` · labelled by ${source}` : ""),
      make("h3", {}, make("span", { class: "was" }, sheet.classes[sheet.given[i]]), make("span", { class: "arrow" }, " looks like "), make("span", { class: "now" }, sheet.classes[sheet.like[i]])),
      make("p", { class: "doubt" }, make("b", {}, formatWrong(sheet, i)), sheet.expected ? " likely as it was" : " likely wrong", this.describeSimilar(i)),
      ...(decided ? [decided] : []),
    );
    get("keep").children[0].textContent = sheet.classes[sheet.given[i]];
    get("keep").setAttribute("aria-pressed", String(state === "keep"));
    get("relabel").children[0].textContent = suggested === null ? "" : sheet.classes[suggested];
    get("relabel").disabled = suggested === null;
    get("relabel").setAttribute("aria-pressed", String(state === "relabel"));
    get("skip").setAttribute("aria-pressed", String(state === "skip"));
    get("undo").disabled = !this.past.length && !record;
    if (document.activeElement !== get("note")) get("note").value = record?.note ?? "";
    get("details").replaceChildren(this.makeReasons(i), this.makeTable(i));
  }

  describeSimilar(i) {
    const [against, of] = this.sheet.against[i];
    return of ? ` · ${against} of ${of} similar rows bear another label` : "";
  }

  makeReasons(i) {
    const { sheet } = this;
    const reasons = sheet.reasons[i].map(([place, usual, effect]) => {
      const column = sheet.columns[place];
      return make("li", {}, make("b", {}, column.name), ` is ${getValue(column, i) || "missing"}, usually ${usual} `, make("small", { title: "how strongly it speaks against the label, in log-odds" }, `+${effect.toFixed(1)}`));
    });
    return make("ul", { class: "reasons", "aria-label": "Why" }, ...(reasons.length ? reasons : [make("li", {}, "No single column stands out.")]));
  }

  /** All values of the row, what is usual, and similar rows beside it. */
  makeTable(i) {
    const { sheet } = this, given = sheet.given[i], similar = sheet.similar[i];
    const against = new Set(sheet.reasons[i].map(([place]) => place));
    const heading = (text, kind) => make("th", { scope: "col", class: kind }, text);
    const label = (one) => make("td", { class: sheet.given[one] === given ? undefined : "differs" }, sheet.classes[sheet.given[one]]);
    const top = make("tr", {}, heading("column"), heading("this row", "own"), heading(`usual for ${sheet.classes[given]}`, "usual"), ...similar.map((one) => heading(`${this.config.row_name} ${sheet.name[one]}`, "other")));
    const labels = make("tr", { class: "label" }, make("th", { scope: "row" }, "label"), make("td", { class: "own" }, sheet.classes[given]), make("td", { class: "usual" }), ...similar.map(label));
    const lines = sheet.columns.map((column, place) => {
      const value = getValue(column, i), odd = column.odd.has(i);
      const marks = [against.has(place) ? "against" : "", odd ? "odd" : ""].join(" ").trim();
      const title = [against.has(place) ? "speaks against the label" : "", odd ? "unusual for this label" : ""].filter(Boolean).join(", ");
      const missing = () => make("span", { class: "missing" }, "missing");
      const others = similar.map((one) => make("td", { class: column.usual && getValue(column, one) !== value ? "differs" : undefined }, getValue(column, one) || missing()));
      const own = make("td", { class: `own ${marks}`.trim(), title: title || undefined }, value || missing(), title ? make("span", { class: "unseen" }, ` (${title})`) : null);
      return make("tr", {}, make("th", { scope: "row" }, column.name), own, make("td", { class: "usual" }, column.usual?.[given] ?? ""), ...others);
    });
    const table = make("table", { class: "values" }, make("caption", {}, similar.length ? "Its values, what is usual for its label, and the rows most similar to it" : "Its values, and what is usual for its label"), make("thead", {}, top), make("tbody", {}, labels, ...lines));
    const box = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Values" }, table);
    if (sheet.left_out) box.append(make("p", { class: "aside" }, `${sheet.left_out.toLocaleString("en")} more columns, which matter less, are not shown.`));
    return box;
  }

  /** The table that is printed says what was decided. */
  drawPrint() {
    [...get("suspects").tBodies[0].rows].forEach((row, i) => {
      const record = this.record(i);
      row.cells[6].textContent = record ? STATES[record.decision] + (record.decision === "relabel" ? `: ${record.label}` : "") + (record.note ? ` (${record.note})` : "") : "";
    });
  }

  // ---- files ----

  saveDecisions() {
    const { config } = this;
    const lines = [...this.decisions.all].sort(([a], [b]) => a - b).map(([row, one]) => {
      const i = this.sheet.rank.get(row);
      const given = i === undefined ? one.given ?? "" : config.classes[this.sheet.given[i]];
      const line = i === undefined ? one.line ?? "" : this.name(i);
      return [row, line, given, one.decision, one.label, one.note ?? "", one.decided_at ?? "", config.fingerprint];
    });
    offerFile("decisions.csv", writeCsv([COLUMNS, ...lines]));
  }

  async loadDecisions(file) {
    let found;
    try {
      found = readDecisions(await file.text(), this.config.fingerprint, this.config.classes);
    } catch (error) {
      return this.tell(`${file.name} cannot be loaded: ${error.message}.`);
    }
    for (const { row, decision, label, note, decided_at, given, line } of found) {
      this.decisions.put(row, { decision, label, note, decided_at, given, line });
    }
    this.past = [];
    this.refresh();
    this.tell(`${found.length.toLocaleString("en")} decisions loaded from ${file.name}.`);
  }

  /** The rows that the filter shows, in its order, with all that is known of them. */
  downloadList() {
    const { sheet, config } = this;
    const head = [config.row_name, "label", "looks_like", "probability_wrong", ...(sheet.source ? ["source"] : []), "reasons", "decision", "right_label", "note", ...sheet.columns.map((one) => one.name)];
    const lines = this.shown.map((i) => {
      const record = this.record(i);
      const source = sheet.source ? [sheet.source.values[sheet.source.codes[i]]] : [];
      const decided = record ? [record.decision, record.decision === "skip" ? "" : record.label, record.note ?? ""] : ["", "", ""];
      return [sheet.name[i], config.classes[sheet.given[i]], config.classes[sheet.like[i]], sheet.wrong[i], ...source, listReasons(sheet, i).join("; "), ...decided, ...sheet.columns.map((column) => getValue(column, i))];
    });
    offerFile("review-list.csv", writeCsv([head, ...lines]));
  }

  // ---- classes ----

  openPicker() {
    get("pick").value = "";
    this.picked = 0;
    this.drawPicks();
    get("picker").showModal();
  }

  drawPicks() {
    const word = get("pick").value.trim().toLowerCase();
    this.picks = this.sheet.classes.map((name, label) => [name, label]).filter(([name]) => name.toLowerCase().includes(word)).slice(0, 50);
    this.picked = Math.max(0, Math.min(this.picked, this.picks.length - 1));
    get("picks").replaceChildren(
      ...this.picks.map(([name, label], place) => {
        const one = make("div", { role: "option", id: `pick-${place}`, "aria-selected": String(place === this.picked) }, name);
        one.addEventListener("click", () => this.pick(label));
        return one;
      }),
    );
    get("pick").setAttribute("aria-activedescendant", `pick-${this.picked}`);
    get("picks").children[this.picked]?.scrollIntoView({ block: "nearest" });
  }

  pick(label) {
    get("picker").close();
    this.relabel(label);
  }

  // ---- listening ----

  listen() {
    const on = (id, event, action) => get(id).addEventListener(event, action);
    const click = (id, action) => on(id, "click", action);
    for (const id of ["words", "state", "given", "like", "order"]) {
      on(id, "input", () => {
        this.filter();
        if (this.at < 0 && this.shown.length) this.move(0);
        else this.reveal();
      });
    }
    get("words").form.addEventListener("submit", (event) => event.preventDefault());
    this.list.addEventListener("scroll", () => this.drawList());
    addEventListener("resize", () => this.drawList());
    this.list.addEventListener("click", (event) => {
      const item = event.target.closest(".item");
      if (item) this.open(Number(item.dataset.i));
    });
    click("keep", () => this.keep());
    click("relabel", () => this.relabel(this.suggest(this.current)));
    click("skip", () => this.skip());
    click("undo", () => this.undo());
    get("choose")?.addEventListener("click", () => this.openPicker());
    for (const one of document.querySelectorAll("#classes button")) one.addEventListener("click", () => this.relabel(Number(one.dataset.label)));
    on("uses-keys", "change", () => this.switchKeys(get("uses-keys").checked));
    click("save", () => this.saveDecisions());
    click("load", () => get("file").click());
    click("download", () => this.downloadList());
    click("help", () => get("keys").showModal());
    on("file", "change", () => {
      if (get("file").files[0]) this.loadDecisions(get("file").files[0]);
      get("file").value = "";
    });
    on("note", "change", () => this.writeNote());
    on("pick", "input", () => {
      this.picked = 0;
      this.drawPicks();
    });
    on("pick", "keydown", (event) => this.pressInPicker(event));
    document.addEventListener("keydown", (event) => this.press(event));
  }

  pressInPicker(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") {
      event.preventDefault();
      if (this.picks.length) this.pick(this.picks[this.picked][1]);
    } else if (step) {
      event.preventDefault();
      this.picked += step;
      this.drawPicks();
    }
  }

  /** Keys count where nothing is typed: in the place to work, or where nothing has the focus. */
  press(event) {
    const focused = document.activeElement;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (focused === get("words") || focused === get("note")) return this.pressInField(event, focused);
    const isInside = get("work").contains(focused);
    if ((!isInside && focused !== document.body) || focused.matches("select")) return;
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW_HEIGHT) - 1);
    const moves = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: Infinity };
    if (event.key in moves && (focused === this.list || (isInside && this.isInView()))) {
      event.preventDefault();
      return this.move(moves[event.key]);
    }
    const found = get("uses-keys").checked ? this.findAction(event) : null;
    if (!found) return;
    event.preventDefault();
    if (found.isAboutRow && !this.isInView()) return this.bringIntoView();
    if (!isInside) this.list.focus({ preventScroll: true });
    found.act();
  }

  /** What a key does, and whether that is about the row at hand: it presses the button that shows it, if there is one. */
  findAction(event) {
    const key = event.key.toLowerCase();
    const button = this.buttons.get(event.shiftKey && key === "k" ? "y" : key);
    if (button) return event.repeat ? null : { act: () => button.click(), isAboutRow: get("sheet").contains(button) };
    const others = {
      j: () => this.move(this.at + 1),
      k: () => this.move(this.at - 1),
      n: () => get("note").focus(),
      "/": () => get("words").focus(),
    };
    return Object.hasOwn(others, key) ? { act: others[key], isAboutRow: key !== "/" } : null;
  }

  /** Whether somebody at the screen sees which row is at hand, and its label. */
  isInView() {
    const [row, label] = get("head").children;
    return row.getBoundingClientRect().top > -1 && label.getBoundingClientRect().top + LINE_HEIGHT <= innerHeight;
  }

  bringIntoView() {
    if (!this.decisions.isGone) this.tell("Keys act on the row at hand, which was out of view. Here it is: press the key again.");
    this.goToWork();
  }

  goToWork() {
    this.list.focus({ preventScroll: true });
    const atTop = { block: "start", behavior: "instant" };
    get("work").scrollIntoView(atTop);
    if (!this.isInView()) get("sheet").scrollIntoView(atTop);
  }

  /** Switch the keys on or off, here and when the page is opened again. */
  switchKeys(isOn) {
    get("uses-keys").checked = isOn;
    get("work").classList.toggle("keyless", !isOn);
    this.decisions.remember(KEYS_OFF, isOn ? null : "yes");
  }

  pressInField(event, field) {
    if (event.key !== "Escape" && event.key !== "Enter") return;
    event.preventDefault();
    if (field === get("note") && event.key === "Escape") field.value = this.record(this.current)?.note ?? "";
    if (field === get("words") && event.key === "Escape" && field.value) {
      field.value = "";
      field.dispatchEvent(new Event("input"));
    }
    this.list.focus({ preventScroll: true }); // leaving a note that has changed keeps it
  }
}

if (get("review-data")) {
  const config = JSON.parse(get("review-config").textContent);
  unpack(get("review-data").textContent).then(
    (sheet) => new Workplace(prepare(sheet, config), config),
    () => get("plain").before(make("p", { role: "alert" }, "This browser is too old to show all rows: here are the first ones.")),
  );
}
