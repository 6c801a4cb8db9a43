// Elements are created one by one and texts are set as text: no data is ever parsed as HTML.

const byId = (id) => document.getElementById(id);

function create(tag, { className, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A text from the data. `bdi` isolates marks that change the direction of writing.
const dataText = (text) => create("bdi", { className: "data" }, String(text ?? ""));

// Replace the children only if they differ: a live page must not lose a selection, and a screen
// reader must not read the same again.
function setChildren(element, ...children) {
  const fresh = create("div", {}, ...children);
  const same =
    fresh.childNodes.length === element.childNodes.length &&
    [...fresh.childNodes].every((child, index) => child.isEqualNode(element.childNodes[index]));
  if (!same) element.replaceChildren(...fresh.childNodes);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A sentence instead of a list or chart that would be empty.
const emptyMessage = (text) => create("p", { className: "empty" }, text);

// `columns` are [heading, kind] with kind "text" or "number"; the layout on phones goes by `style`.
function createTable(style, caption, columns, rows) {
  const headings = columns.map(([heading, kind]) =>
    create("th", { scope: "col", className: kind }, heading));
  const body = rows.map((cells) =>
    create("tr", {}, ...cells.map((cell, index) => {
      const [heading, kind] = columns[index];
      return create("td", { className: kind, "data-label": heading }, cell);
    })),
  );
  return create(
    "table", { className: style },
    create("caption", {}, caption),
    create("thead", {}, create("tr", {}, ...headings)),
    create("tbody", {}, ...body),
  );
}

// A details element whose content is built when it is first opened or printed: it may be long.
class Collapsible {
  constructor(build) {
    this.build = build;
    this.summary = create("summary");
    this.content = create("div");
    this.element = create("details", {}, this.summary, this.content);
    this.element.addEventListener("toggle", () => this.update());
    addEventListener("beforeprint", () => {
      this.wasOpen = this.element.open;
      this.element.open = true;
      this.update();
    });
    addEventListener("afterprint", () => {
      this.element.open = this.wasOpen ?? this.element.open;
    });
  }

  // A title of null: there is nothing to show.
  setTitle(title) {
    this.element.hidden = title === null;
    setText(this.summary, title ?? "");
    this.update();
  }

  update() {
    if (this.element.hidden) this.content.replaceChildren();
    else if (this.element.open) setChildren(this.content, ...this.build());
  }
}
