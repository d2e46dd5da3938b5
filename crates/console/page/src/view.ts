// What all views have in common.

import { fill, h, shape, text, type Child, type Shape } from "./dom";
import type { Plant } from "./plant";

export interface View {
  readonly element: HTMLElement;
  /** Shows what is known now; called behind each turn of asking. */
  update(): void;
  /** The address has other parameters than before. */
  moved?(query: URLSearchParams): void;
  /** Another view takes its place. */
  end(): void;
}

export type MakeView = (plant: Plant, query: URLSearchParams) => View;

/** A section with a heading and a sentence that says what is to be seen. */
export function section(title: string, about: string, ...children: Child[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), h("p", { class: "about" }, about), ...children);
}

/** A figure: its name, its value, and the sentence that explains it. */
export class Figure {
  readonly element: HTMLElement;
  readonly #value: HTMLElement;
  readonly #about = h("dd", { class: "explained" });

  constructor(id: string, name: string) {
    this.#value = h("dd", { class: "value", id });
    this.element = h("div", { class: "figure" }, h("dt", {}, name), this.#value, this.#about);
  }

  set(value: string, about: string): void {
    text(this.#value, value);
    text(this.#about, about);
  }
}

/** The words for a shape, where there is room for no sentence. */
export function marked(of: Shape, ...children: Child[]): HTMLElement {
  return h("span", { class: `marked ${of}` }, shape(of), ...children);
}

/** What stands where there is nothing to show, and why. */
export function empty(why: string, todo = ""): HTMLElement {
  return h("p", { class: "empty" }, why, todo && h("span", {}, ` ${todo}`));
}

/** Says that what is shown is of before, and why; nothing without an error. */
export function failed(into: HTMLElement, what: string, error: Error | null): void {
  const says = error ? `${what} is not up to date: ${error.message}.` : "";
  fill(into, says, () => (error ? [shape("watch"), ` ${says}`] : []));
}

/** What stands where there is nothing of a part of the state; `why`, if the gateway has none. */
export function nothing(missing: string | null, why: string, todo = ""): HTMLElement {
  return missing === null ? empty(why, todo) : empty(missing);
}
