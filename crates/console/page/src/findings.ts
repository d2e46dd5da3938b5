// The things that are not well, as a list.

import { fill, h, shape } from "./dom";
import type { Finding } from "./judge";

const WORDS = { act: "to act on", watch: "to watch", note: "earlier" } as const;

/** The things that are not well, as a list. */
export function showFindings(into: HTMLElement, found: Finding[]): void {
  const key = JSON.stringify(found);
  fill(into, key, () => found.map(showFinding));
}

function showFinding(one: Finding): HTMLElement {
  return h(
    "li",
    { class: `finding ${one.severity}` },
    shape(one.severity),
    h(
      "div",
      {},
      h("strong", {}, h("span", { class: "tag" }, WORDS[one.severity]), ` ${one.title}.`),
      h("p", {}, one.means),
      h(
        "p",
        { class: "todo" },
        one.todo,
        " ",
        h("a", { href: `#/${one.view}` }, `See ${one.view.split("?")[0]}`),
      ),
    ),
  );
}
