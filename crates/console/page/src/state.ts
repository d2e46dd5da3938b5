// What the states of an instrument look like, and mean.

import { h, shape, type Shape } from "./dom";

/** Of each state its shape, and what it means. */
export const STATES: Record<string, [Shape, string]> = {
  live: ["good", "the book is complete"],
  recovering: ["act", "the book is incomplete"],
  stale: ["watch", "the lines are silent, and the book may be out of date"],
  closed: ["off", "the instrument is not traded any more"],
  unheard: ["off", "the feed has said nothing about the book so far"],
};

export function stateMark(state: string): HTMLElement {
  const [of, means] = STATES[state] ?? ["note", ""];
  return h("span", { class: `marked ${of}`, title: means }, shape(of), state);
}
