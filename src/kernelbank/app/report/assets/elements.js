// Elements are made one by one and texts go in as texts: nothing from the data is read as HTML.

const byId = (id) => document.getElementById(id);

function make(tag, { className, ...properties } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A text from the data. `bdi` keeps marks that turn the direction of writing inside of it.
const fromData = (text) => make("bdi", { className: "data" }, String(text ?? ""));

// Put new children in only if they say something else: a live page must not lose a selection, and
// a screen reader must not hear the same again.
function fill(element, ...children) {
  const fresh = make("div", {}, ...children);
  const same =
    fresh.childNodes.length === element.childNodes.length &&
    [...fresh.childNodes].every((child, place) => child.isEqualNode(element.childNodes[place]));
  if (!same) element.replaceChildren(...fresh.childNodes);
}

// A sentence instead of a list or chart that would be empty.
const nothing = (words) => make("p", { className: "empty" }, words);

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A table; `columns` are [heading, kind] where kind is "text" or "number". What it becomes on a
// phone goes by `look`.
function table(look, caption, columns, rows) {
  const heads = columns.map(([heading, kind]) =>
    make("th", { scope: "col", className: kind }, heading));
  const body = rows.map((cells) =>
    make("tr", {}, ...cells.map((cell, place) => {
      const [heading, kind] = columns[place];
      return make("td", { className: kind, "data-label": heading }, cell);
    })),
  );
  return make(
    "table", { className: look },
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...body),
  );
}

// What is folded away is made when it is first opened or printed: it may be a thousand rows.
class Folded {
  constructor(build) {
    this.build = build;
    this.summary = make("summary");
    this.room = make("div");
    this.element = make("details", {}, this.summary, this.room);
    this.element.addEventListener("toggle", () => this.show());
    addEventListener("beforeprint", () => {
      this.wasOpen = this.element.open;
      this.element.open = true;
      this.show();
    });
    addEventListener("afterprint", () => {
      this.element.open = this.wasOpen ?? this.element.open;
    });
  }

  // `words` of null: there is nothing to fold away.
  set(words) {
    this.element.hidden = words === null;
    say(this.summary, words ?? "");
    this.show();
  }

  show() {
    if (this.element.hidden) this.room.replaceChildren();
    else if (this.element.open) fill(this.room, ...this.build());
  }
}
