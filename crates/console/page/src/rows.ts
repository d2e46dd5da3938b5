// A list of which only the rows in sight are in the document: ten thousand scroll as ten do.

import { attribute, h } from "./dom";

/** Rows kept beyond both edges. */
const BEYOND = 4;

export interface Row<T> {
  readonly element: HTMLElement;
  show(item: T): void;
}

/** A scrolling list of rows of one height. */
export class Rows<T> {
  readonly element: HTMLElement;
  readonly #inner = h("div", { class: "rows", role: "rowgroup" });
  readonly #make: () => Row<T>;
  readonly #pool: Row<T>[] = [];
  #items: T[] = [];
  #height = 0;
  #frame = 0;
  #observer: ResizeObserver;

  /** `head` is the row of column heads, which stays in sight. */
  constructor(label: string, head: HTMLElement, make: () => Row<T>) {
    this.#make = make;
    const rolled = { class: "scroll", role: "table", tabindex: 0, "aria-label": label };
    this.element = h(
      "div",
      rolled,
      h("div", { role: "rowgroup", class: "head" }, head),
      this.#inner,
    );
    this.element.addEventListener("scroll", () => this.#soon(), { passive: true });
    this.#observer = new ResizeObserver(() => this.#soon());
    this.#observer.observe(this.element);
  }

  end(): void {
    this.#observer.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  set(items: T[]): void {
    this.#items = items;
    attribute(this.element, "aria-rowcount", String(items.length + 1));
    this.#soon();
  }

  /** Draws in the next frame, however often it is asked for. */
  #soon(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    // The height is the style's, and another one on a narrow screen.
    const style = getComputedStyle(this.element);
    this.#height = Number.parseFloat(style.getPropertyValue("--row")) || 40;
    const height = `${this.#items.length * this.#height}px`;
    if (this.#inner.style.height !== height) {
      this.#inner.style.height = height;
    }
    const sight = Math.ceil(this.element.clientHeight / this.#height);
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.#height) - BEYOND);
    const last = Math.min(this.#items.length, first + sight + 2 * BEYOND);
    const wanted = sight + 2 * BEYOND;
    while (this.#pool.length < wanted) {
      const row = this.#make();
      this.#pool.push(row);
      this.#inner.append(row.element);
    }
    const shown: Row<T>[] = [];
    for (let index = first; index < last; index += 1) {
      const row = this.#pool[index % this.#pool.length];
      const item = this.#items[index];
      if (row && item !== undefined) {
        row.show(item);
        attribute(row.element, "aria-rowindex", String(index + 2));
        row.element.style.transform = `translateY(${index * this.#height}px)`;
        row.element.hidden = false;
        shown.push(row);
      }
    }
    const isShown = new Set(shown);
    for (const row of this.#pool) {
      if (!isShown.has(row)) {
        row.element.hidden = true;
      }
    }
    this.#inOrder(shown);
  }

  /** Has the rows stand in the document in their order, in which Tab passes them. */
  #inOrder(shown: Row<T>[]): void {
    // An element that is moved loses the focus.
    if (this.#inner.contains(document.activeElement)) {
      return;
    }
    let next: Element | null = null;
    for (const { element } of shown.toReversed()) {
      if (element.nextElementSibling !== next) {
        this.#inner.insertBefore(element, next);
      }
      next = element;
    }
  }
}
