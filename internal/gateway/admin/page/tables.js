// Tables, lists and bars. All text is set as textContent: keys and names come
// from clients and configurations, and may look like markup.

function put(e, text) {
  // Written only if it has changed, so that a selection survives updates.
  if (e.textContent !== text) e.textContent = text;
}

export function text(id, value) {
  put(document.getElementById(id), value);
}

// resize adds or removes children until parent has n of them.
function resize(parent, n, make) {
  while (parent.children.length > n) parent.lastElementChild.remove();
  while (parent.children.length < n) parent.append(make(parent.children.length));
}

// table fills the body of a table. rows are arrays of cells: text, or
// {text, className}. Columns whose head has the class n hold numbers.
export function table(id, rows, nothing) {
  const t = document.getElementById(id);
  const heads = [...t.tHead.rows[0].cells];
  const body = t.tBodies[0];
  if (!rows.length) {
    resize(body, 1, () => document.createElement("tr"));
    resize(body.rows[0], 1, () => document.createElement("td"));
    const cell = body.rows[0].cells[0];
    cell.colSpan = heads.length;
    cell.className = "empty";
    put(cell, nothing);
    return;
  }
  resize(body, rows.length, () => document.createElement("tr"));
  rows.forEach((cells, i) => {
    const row = body.rows[i];
    if (row.cells[0] && row.cells[0].colSpan > 1) row.replaceChildren();
    resize(row, cells.length, (j) => {
      const cell = document.createElement(j ? "td" : "th");
      if (!j) cell.scope = "row";
      return cell;
    });
    cells.forEach((c, j) => {
      const cell = row.cells[j];
      const className = [heads[j].className, c.className || ""].join(" ").trim();
      if (cell.className !== className) cell.className = className;
      put(cell, c.text === undefined ? c : c.text);
    });
  });
}

// list fills a list with one item for each text.
export function list(id, texts) {
  const ul = document.getElementById(id);
  resize(ul, texts.length, () => document.createElement("li"));
  texts.forEach((t, i) => put(ul.children[i], t));
  ul.hidden = texts.length === 0;
}

// bars fills a list with rows of label, bar and value; share is 0 to 1.
export function bars(id, rows) {
  const ul = document.getElementById(id);
  resize(ul, rows.length, () => {
    const li = document.createElement("li");
    for (const name of ["label", "track", "amount"]) {
      const span = document.createElement("span");
      span.className = name;
      li.append(span);
    }
    li.children[1].setAttribute("aria-hidden", "true");
    li.children[1].append(document.createElement("i"));
    return li;
  });
  rows.forEach((r, i) => {
    const [label, track, amount] = ul.children[i].children;
    put(label, r.label);
    track.firstChild.style.width = `${(100 * r.share).toFixed(2)}%`;
    put(amount, r.amount);
  });
}

// meters fills a container with a meter and a list of terms for each element of all. Above its
// share high, the meter is orange.
export function meters(id, all) {
  const host = document.getElementById(id);
  if (!all.length) return;
  if (host.firstElementChild && host.firstElementChild.className === "empty") host.replaceChildren();
  resize(host, all.length, () => {
    const section = document.createElement("section");
    const head = document.createElement("p");
    head.className = "meter-text";
    const meter = document.createElement("meter");
    meter.min = 0;
    meter.max = 1;
    meter.optimum = 0;
    const facts = document.createElement("dl");
    facts.className = "facts";
    section.append(head, meter, facts);
    return section;
  });
  all.forEach((one, i) => {
    const [head, meter, facts] = host.children[i].children;
    put(head, one.text);
    meter.high = one.high ?? 1;
    meter.value = one.share;
    meter.setAttribute("aria-label", one.text);
    resize(facts, one.facts.length, () => {
      const div = document.createElement("div");
      div.append(document.createElement("dt"), document.createElement("dd"));
      return div;
    });
    one.facts.forEach(([term, value], j) => {
      put(facts.children[j].children[0], term);
      put(facts.children[j].children[1], value);
    });
  });
}
