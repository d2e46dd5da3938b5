// Elements without a framework. Text is always set as text: what peers and feeds say is no HTML.

export type Child = Node | string | number | null | undefined | false;

type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

/** An element. Keys that begin with `on` are listeners; `true` and `false` set and leave out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  add(element, children);
  return element;
}

function add(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
}

/** Sets the text of an element, touching the document only where it differs. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) {
    element.textContent = value;
  }
}

/** Sets or removes an attribute, touching the document only where it differs. */
export function attribute(element: Element, name: string, value: string | null): void {
  if (value === null) {
    if (element.hasAttribute(name)) {
      element.removeAttribute(name);
    }
  } else if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

/** Replaces the children, unless `key` says that they are those that are there. */
export function fill(element: HTMLElement, key: string, make: () => Child[]): void {
  if (element.dataset["key"] !== key) {
    element.dataset["key"] = key;
    element.replaceChildren();
    add(element, make());
  }
}

const SVG = "http://www.w3.org/2000/svg";

/** The shapes that stand beside colours, so that nothing is told by a colour alone. */
const SHAPES = {
  good: "M2.5 8.5 6.5 12.5 13.5 4",
  act: "M8 1.5 15 14H1Z",
  watch: "M8 1 15 8 8 15 1 8Z",
  note: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2Z",
  off: "M4 4 12 12M12 4 4 12",
} as const;

export type Shape = keyof typeof SHAPES;

/** A shape of the size of the text, which readers of screens pass over. */
export function shape(of: Shape): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `shape ${of}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", SHAPES[of]);
  svg.append(path);
  return svg;
}
