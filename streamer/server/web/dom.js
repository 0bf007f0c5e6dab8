// Elements, texts and lists that are changed only where they differ: focus, selection and scroll
// position stay where they are. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const VIEWS = new WeakMap();

/** An HTML element with attributes and children (nodes or texts). */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** The element with an id of index.html. */
export function byId(id) {
  return document.getElementById(id);
}

/** A text that may be broken after "_" and "=". */
export function breakable(text) {
  return text.split(/(?<=[_=])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}

/** Whether a text has a word so long that it may be broken anywhere. */
export function isLong(text) {
  return /\S{18}/.test(text);
}

/** Set the text of an element without children. */
export function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** Show a text, or hide the element where it is empty. */
export function setNote(node, text) {
  setText(node, text);
  node.hidden = !text;
}

/** Show the lines of a list, or hide it where there are none. */
export function setLines(list, lines) {
  keep(list, lines, (text) => text, () => {
    const root = element("li");
    return { root, update: (text) => setText(root, text) };
  });
  list.hidden = !lines.length;
}

/** Show pairs of a title and a text in a list of them. */
export function setFacts(list, pairs) {
  keep(list, pairs, ([title]) => title, ([title]) => {
    const text = element("dd");
    const root = element("div", {}, element("dt", {}, `${title}: `), text);
    return { root, update: ([, value]) => setText(text, value) };
  });
}

/** Set an attribute. */
export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) {
    node.setAttribute(name, value);
  }
}

/**
 * Let the children of `parent` be one for each item, in order: those of keys that were there before
 * stay the same elements. `make(item)` gives a view: its `root`, and `update(item)`.
 * Returns the views by key.
 */
export function keep(parent, items, keyOf, make) {
  const old = VIEWS.get(parent) ?? new Map();
  const views = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const view = old.get(key) ?? make(item);
    views.set(key, view);
    view.update(item);
  }
  for (const [key, view] of old) {
    if (!views.has(key)) {
      view.root.remove();
    }
  }
  let place = parent.firstElementChild;
  for (const { root } of views.values()) {
    if (root === place) {
      place = place.nextElementSibling;
    } else {
      parent.insertBefore(root, place);
    }
  }
  VIEWS.set(parent, views);
  return views;
}

/** Let a select offer these options ({value, text}), with `value` chosen. */
export function setOptions(select, options, value) {
  keep(select, options, (option) => option.value, () => {
    const root = element("option");
    return {
      root,
      update(option) {
        setAttribute(root, "value", option.value);
        setText(root, option.text);
      },
    };
  });
  if (select.value !== value) {
    select.value = value;
  }
}

/** A view of plain text: a list entry, a paragraph. */
export function textView(tag, attributes = {}) {
  const root = element(tag, attributes);
  return { root, update: (text) => setText(root, text) };
}
