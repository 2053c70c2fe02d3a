// ---- the rows: unpacked from the page, searched and put in order ----

const get = (id) => document.getElementById(id);

/** Unpack what Python packed: JSON, deflated, in base64. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Add what the script needs to the rows: what each column can be searched by, and which values are unusual. */
function prepare(sheet, config) {
  for (const column of sheet.columns) column.odd = new Set(column.odd);
  sheet.classes = config.classes.map((one) => one || "(empty)");
  sheet.rank = new Map(sheet.row.slice(0, sheet.n).map((row, i) => [row, i]));
  const field = (keys, values, codes) => ({ keys: keys.map(simplify), values, codes });
  sheet.fields = sheet.columns.map((column) => field([column.name], column.values, column.codes));
  sheet.fields.push(field(["row", "id", config.row_name], sheet.name.slice(0, sheet.n).map(String), null));
  sheet.fields.push(field(["label", "given"], sheet.classes, sheet.given));
  sheet.fields.push(field(["looks", "like", "looks like"], sheet.classes, sheet.like));
  sheet.fields.push(field(["why", "reason", "reasons"], sheet.reasons.map((_, i) => listReasons(sheet, i).join("; ")), null));
  if (sheet.source) sheet.fields.push(field(["source", "by"], sheet.source.values, sheet.source.codes));
  return sheet;
}

const getValue = (column, i) => column.values[column.codes[i]];

/** The reasons of a row in words. */
function listReasons(sheet, i) {
  return sheet.reasons[i].map(([place, usual]) => {
    const column = sheet.columns[place];
    return `${column.name} is ${getValue(column, i) || "missing"}, usually ${usual}`;
  });
}

/** Write a probability in percent that does not claim certainty, as Python does. */
function formatProbability(value) {
  return value > 0.99 ? "over 99 %" : value < 0.01 ? "under 1 %" : `${Math.round(100 * value)} %`;
}

/** How likely a label is wrong; of an outcome of chance, how likely it was. */
function formatWrong(sheet, i) {
  return formatProbability((sheet.expected ?? sheet.wrong)[i]);
}

// Names of columns are compared without case, blanks and marks, so that `monthly_fee:` finds "Monthly fee".
const simplify = (name) => String(name).toLowerCase().replace(/[\s_-]+/g, "");

/** Split what was typed into words, each perhaps with the column that it is looked for in. */
function parseQuery(text) {
  const unquote = (part) => part.replaceAll('"', "");
  return (text.match(/(?:"[^"]*"?|[^\s"])+/g) || []).map((whole) => {
    const parts = whole.match(/^("[^"]*"|[^":]+):(.+)$/);
    return { whole: unquote(whole).toLowerCase(), key: parts && simplify(unquote(parts[1])), rest: parts && unquote(parts[2]).toLowerCase() };
  });
}

/** All that can be found of each row, a line for each cell: one long text is searched faster than many short ones. */
function joinTexts(sheet) {
  const lower = sheet.fields.map((field) => field.values.map((value) => value.toLowerCase()));
  return Array.from({ length: sheet.n }, (_, i) => sheet.fields.map((field, place) => lower[place][field.codes ? field.codes[i] : i]).join("\n"));
}

/** Mark with 1 the rows that have all the words; `notes` are those of rows, by place. */
function search(sheet, text, notes) {
  const found = new Uint8Array(sheet.n).fill(1);
  for (const { whole, key, rest } of parseQuery(text)) {
    const named = key === null ? [] : sheet.fields.filter((field) => field.keys.includes(key));
    const isNamed = named.length > 0 || key === "note";
    const word = isNamed ? rest : whole;
    const here = new Uint8Array(sheet.n);
    if (!isNamed) {
      sheet.texts ??= joinTexts(sheet);
      for (let i = 0; i < sheet.n; i++) here[i] = sheet.texts[i].includes(word);
    }
    for (const field of named) {
      const has = field.values.map((value) => value.toLowerCase().includes(word));
      for (let i = 0; i < sheet.n; i++) here[i] |= has[field.codes ? field.codes[i] : i];
    }
    if (!named.length) for (const [i, note] of notes) if (note.toLowerCase().includes(word)) here[i] = 1;
    for (let i = 0; i < sheet.n; i++) found[i] &= here[i];
  }
  return found;
}

/** The rows in an order: by the name or the code of a column, and of equals the most doubtful first. */
function arrange(sheet, order) {
  const rows = Array.from({ length: sheet.n }, (_, i) => i);
  if (!order) return rows;
  const compare = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" }).compare;
  if (order === "name") return rows.sort((a, b) => compare(String(sheet.name[a]), String(sheet.name[b])) || a - b);
  return rows.sort((a, b) => sheet[order][a] - sheet[order][b] || a - b);
}
