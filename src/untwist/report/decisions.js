// ---- decisions: kept in the browser or by a server, written to a file and read from one ----

const COLUMNS = ["row", "line", "given", "decision", "label", "note", "decided_at", "fingerprint"];
const POLL_EVERY = 2000; // milliseconds
const ANSWER_WITHIN = 60000; // milliseconds, or the server counts as gone

// ---- files ----

/** Whether a spreadsheet takes text for a formula, apart from quotes before it; a plain number is none. */
function isFormula(text) {
  const bare = text.replace(/^'+/, "");
  return /^[=+\-@\t\r\n]/.test(bare) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(bare);
}

/** Write a cell of a CSV file; a formula gets a quote before it. */
function writeCell(value) {
  const text = String(value);
  const plain = isFormula(text) ? "'" + text : text;
  return /[",;\t\r\n]/.test(plain) ? '"' + plain.replaceAll('"', '""') + '"' : plain;
}

const readCell = (text) => (text.startsWith("'") && isFormula(text) ? text.slice(1) : text);

// Spreadsheets need to be told of UTF-8, by the first character.
const writeCsv = (lines) => "\ufeff" + lines.map((line) => line.map(writeCell).join(",") + "\r\n").join("");

/** Split CSV into lines of cells; spreadsheets may have put semicolons or tabs between them. */
function parseCsv(content) {
  const text = content.replace(/^\ufeff/, "");
  const first = text.split(/[\r\n]/, 1)[0];
  const count = (mark) => first.split(mark).length;
  const separator = [",", ";", "\t"].reduce((a, b) => (count(b) > count(a) ? b : a));
  const lines = [[]];
  let cell = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const one = text[i];
    if (quoted && one === '"' && text[i + 1] === '"') cell += text[++i];
    else if (one === '"') quoted = !quoted;
    else if (quoted) cell += one;
    else if (one === separator || one === "\n" || one === "\r") {
      lines.at(-1).push(cell);
      cell = "";
      if (one !== separator) lines.push([]);
      if (one === "\r" && text[i + 1] === "\n") i++;
    } else cell += one;
  }
  lines.at(-1).push(cell);
  return lines.filter((line) => line.some((one) => one.trim() !== "")).map((line) => line.map(readCell));
}

/** Give a text to the person at the browser as a file. */
function offerFile(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Read a file of decisions about the data of a fingerprint; an Error says in words why it cannot be. */
function readDecisions(content, fingerprint, classes) {
  const [names, ...lines] = parseCsv(content);
  const places = Object.fromEntries(COLUMNS.map((name) => [name, (names || []).findIndex((one) => one.trim() === name)]));
  for (const name of ["row", "given", "decision", "label", "fingerprint"]) {
    if (places[name] < 0) throw new Error(`there is no column "${name}": it is no file of decisions, or has lost its first line`);
  }
  return lines.map((line, i) => {
    const found = Object.fromEntries(COLUMNS.map((name) => [name, line[places[name]] ?? ""]));
    const where = `line ${i + 2}`;
    found.decision = found.decision.trim();
    if (found.fingerprint.trim() !== fingerprint) throw new Error("its decisions are about other data (the fingerprint differs)");
    if (!/^\s*\d{1,15}\s*$/.test(found.row)) throw new Error(`${where}: row must be a whole number from 0`);
    if (!["keep", "relabel", "skip"].includes(found.decision)) throw new Error(`${where}: the decision must be keep, relabel or skip`);
    if (found.decision !== "relabel") found.label = found.given;
    if (!classes.includes(found.label)) throw new Error(`${where}: "${found.label}" is no class of these data`);
    found.row = Number(found.row);
    return found;
  });
}

// ---- where decisions are kept ----

/**
 * Decisions by row, each with decision, label, note and decided_at; `given` and `line` where they are known.
 * Every row has an entry of its own in the browser's storage, so that two tabs do not overwrite each other.
 */
class Decisions {
  constructor(config, whenChanged, tell) {
    Object.assign(this, { config, whenChanged, tell, all: new Map(), version: 0, isSending: false, isGone: false });
    this.prefix = `untwist:${config.fingerprint}:`;
    this.storage = openStorage();
    if (!this.storage) tell("This browser keeps nothing for this page: save your decisions as a file before you close it.");
    if (config.server === null) {
      for (const [row, record] of this.readStored("row:")) this.all.set(row, record);
      addEventListener("storage", (event) => this.followTab(event));
      this.known = Promise.resolve(); // settled once it is known what has been decided
    } else {
      this.waiting = this.readStored("waiting:");
      for (const [row, record] of this.waiting) if (record.decision !== null) this.all.set(row, record);
      this.known = this.exchange();
      setInterval(() => this.exchange(), POLL_EVERY);
    }
  }

  readStored(kind) {
    const found = new Map();
    for (let i = 0; this.storage && i < this.storage.length; i++) {
      const key = this.storage.key(i);
      if (key.startsWith(this.prefix + kind)) found.set(Number(key.slice((this.prefix + kind).length)), JSON.parse(this.storage.getItem(key)));
    }
    return found;
  }

  store(kind, row, record) {
    this.remember(`${this.prefix}${kind}${row}`, record === null ? null : JSON.stringify(record));
  }

  /** Keep a text in the browser's storage; null forgets it. */
  remember(key, text) {
    try {
      if (text === null) this.storage?.removeItem(key);
      else this.storage?.setItem(key, text);
    } catch {
      this.tell("The browser's storage is full: save your decisions as a file now.");
    }
  }

  /** Another tab with the same data decided something. */
  followTab(event) {
    if (!event.key?.startsWith(this.prefix + "row:")) return;
    const row = Number(event.key.slice((this.prefix + "row:").length));
    if (event.newValue === null) this.all.delete(row);
    else this.all.set(row, JSON.parse(event.newValue));
    this.whenChanged();
  }

  /** Decide on a row; a record of null takes its decision back. */
  put(row, record) {
    if (record === null) this.all.delete(row);
    else this.all.set(row, record);
    if (this.config.server === null) this.store("row:", row, record);
    else {
      const sent = record ?? { decision: null, label: "", note: "" };
      this.waiting.set(row, sent);
      this.store("waiting:", row, sent);
      this.exchange();
    }
  }

  // ---- with a server: what waits is sent, one after the other, and what has changed there is taken over ----

  async exchange() {
    if (this.isSending) return;
    this.isSending = true;
    try {
      if (!this.waiting.size) this.take(await this.ask(`${this.config.server}?since=${this.version}`));
      while (this.waiting.size) await this.sendOne(...this.waiting.entries().next().value);
      if (this.isGone) this.tell("");
      this.isGone = false;
    } catch (error) {
      this.isGone = true;
      this.tell(error.words ?? "The server is gone. Go on: decisions are kept in this browser, and sent when it is back.");
    }
    this.isSending = false;
  }

  async sendOne(row, record) {
    const { decision, label, note } = record;
    const body = JSON.stringify({ row, decision, label, note, since: this.version });
    let answer;
    try {
      answer = await this.ask(this.config.server, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    } catch (error) {
      if (![400, 413].includes(error.status)) throw error;
      // What the server refuses it would refuse again: its own decisions count.
      this.settle(row, record);
      this.all.delete(row);
      this.version = 0;
      this.whenChanged();
      this.tell(`The server refused a decision: ${error.answer}`);
      return;
    }
    this.settle(row, record);
    this.take(answer);
  }

  settle(row, record) {
    if (this.waiting.get(row) !== record) return; // it was decided anew in the meantime
    this.waiting.delete(row);
    this.store("waiting:", row, null);
  }

  async ask(address, options) {
    const response = await fetch(address, { ...options, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(ANSWER_WITHIN) });
    if (response.ok) return response.json();
    const answer = await response.text();
    const words = `The server cannot keep decisions (${answer.slice(0, 200) || response.status}). They wait in this browser.`;
    throw Object.assign(new Error(answer), { status: response.status, answer: answer.slice(0, 200), words });
  }

  take(answer) {
    if (answer.version < this.version) this.version = 0; // another run of the server: it tells all at the next call
    else this.version = answer.version;
    // Another run of the server tells all that there is: what it does not list is undecided.
    if (answer.whole) for (const row of [...this.all.keys()]) if (!this.waiting.has(row)) this.all.delete(row);
    for (const { row, decision, label, note, decided_at } of answer.decisions) {
      if (this.waiting.has(row)) continue;
      if (decision === null) this.all.delete(row);
      else this.all.set(row, { decision, label, note: note ?? "", decided_at });
    }
    if (answer.decisions.length || answer.whole) this.whenChanged();
  }
}

/** The browser's storage, or null where it has none for this page. */
function openStorage() {
  try {
    localStorage.setItem("untwist:test", "");
    localStorage.removeItem("untwist:test");
    return localStorage;
  } catch {
    return null;
  }
}
