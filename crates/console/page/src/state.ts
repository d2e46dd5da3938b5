// What the states of an instrument look like, and mean.

import { h, shape, type Shape } from "./dom";

/** Of each state its shape, and what it means. */
export const STATES: Record<string, [Shape, string]> = {
  live: ["good", "the book is whole"],
  recovering: ["act", "something is missing: the book is not whole"],
  stale: ["watch", "the lines are silent: the book may be old"],
  closed: ["off", "not traded any more"],
};

export function stateMark(state: string): HTMLElement {
  const [of, means] = STATES[state] ?? ["note", ""];
  return h("span", { class: `marked ${of}`, title: means }, shape(of), state);
}
