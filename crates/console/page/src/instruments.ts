// All instruments by state, and one of them: ladder, trades, state, now or as of a moment.

import * as api from "./api";
import type { Instrument } from "./api";
import { addressOf, BookPart, wantedIn, wantedOf } from "./book";
import { attribute, fill, h, text } from "./dom";
import { counted, moment, when, whole } from "./format";
import type { Plant } from "./plant";
import { Rows, type Row } from "./rows";
import { STATES, stateMark } from "./state";
import { empty, failed, type View } from "./view";

/** The most instruments in the list; a prefix finds the others. */
const MOST = 1000;
/** How often the list is asked for, in ms. */
const EACH = 2000;

export function instruments(plant: Plant, query: URLSearchParams): View {
  return new Instruments(plant, query);
}

class Instruments implements View {
  readonly element: HTMLElement;
  readonly #plant: Plant;
  readonly #search = h("input", {
    type: "search",
    id: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "Symbol begins with",
  });
  readonly #state = h(
    "select",
    { id: "state", "aria-label": "State" },
    h("option", { value: "" }, "all states"),
    ...Object.keys(STATES).map((state) => h("option", {}, state)),
  );
  readonly #count = h("p", { class: "count", role: "status" });
  readonly #none = h("div", {});
  readonly #failure = h("p", { class: "failure", role: "status" });
  readonly #rows: Rows<Listed>;
  readonly #book: BookPart;
  readonly #split: HTMLElement;
  readonly #absent = h("div", {});
  readonly #unlisten: () => void;
  #asked = 0;
  #isAsking = false;
  #isStale = false;

  constructor(plant: Plant, query: URLSearchParams) {
    this.#plant = plant;
    const heads = ["Symbol", "State", "Changed, UTC"].map((name) =>
      h("span", { class: "cell", role: "columnheader" }, name),
    );
    this.#rows = new Rows(
      "Instruments",
      h("div", { class: "row instrument", role: "row" }, ...heads),
      () => new InstrumentRow(),
    );
    this.#book = new BookPart(plant);
    this.#search.addEventListener("input", () => this.#ask());
    this.#state.addEventListener("change", () => this.#ask());
    const list = h(
      "section",
      { class: "list", "aria-label": "All instruments" },
      h(
        "div",
        { class: "tools", role: "search" },
        h("label", { for: "search", class: "hidden" }, "Symbol begins with"),
        this.#search,
        this.#state,
        this.#count,
      ),
      this.#failure,
      this.#rows.element,
      this.#none,
    );
    this.#split = h("div", { class: "split" }, list, this.#book.element);
    this.element = h(
      "div",
      { class: "instruments" },
      h("h1", {}, "Instruments"),
      h(
        "p",
        { class: "about" },
        "The book of each instrument, as the gateway holds it. A book that is not live is never delivered as live.",
      ),
      this.#absent,
      this.#split,
    );
    this.#unlisten = plant.onChange((kind) => {
      if (kind === "instrument") {
        this.#asked = Math.min(this.#asked, Date.now() - EACH / 2);
      }
    });
    this.moved(query);
  }

  moved(query: URLSearchParams): void {
    const state = query.get("state");
    if (state !== null && state in STATES) {
      this.#state.value = state;
    }
    this.#book.choose(wantedIn(query));
    this.#ask();
  }

  end(): void {
    this.#unlisten();
    this.#rows.end();
  }

  update(): void {
    const none =
      this.#plant.missing("lines") === null &&
      this.#plant.feeds.every((feed) => feed.instruments === 0);
    this.#split.hidden = none;
    fill(this.#absent, String(none), () =>
      none
        ? [
            empty(
              "This gateway has no instruments.",
              "Instruments come from feeds with a mapping (docs/mapping.md), once packets arrive.",
            ),
          ]
        : [],
    );
    if (this.#plant.connection.is === "well" && !none) {
      if (!this.#isAsking && Date.now() - this.#asked >= EACH - 50) {
        this.#ask();
      }
      this.#book.update();
    }
  }

  /** One question at a time: while somebody types, those between are left out. */
  #ask(): void {
    if (this.#isAsking) {
      this.#isStale = true;
      return;
    }
    this.#isAsking = true;
    this.#isStale = false;
    this.#asked = Date.now();
    const query = { limit: MOST, prefix: this.#search.value.trim(), state: this.#state.value };
    api
      .get<{ total: number; instruments: Instrument[] }>("instruments", query)
      .then(({ total, instruments: found }) => {
        // Something else may be wanted meanwhile.
        if (!this.#isStale) {
          this.#show(total, found);
        }
      })
      .catch((error: Error) => failed(this.#failure, "The list", error))
      .finally(() => {
        this.#isAsking = false;
        if (this.#isStale) {
          this.#ask();
        }
      });
  }

  #show(total: number, found: Instrument[]): void {
    failed(this.#failure, "The list", null);
    this.#rows.set(listed(found));
    const some = found.length < total ? `the first ${whole(found.length)} of ` : "";
    text(this.#count, some + counted(total, "instrument"));
    this.#rows.element.hidden = total === 0;
    fill(this.#none, String(total === 0), () =>
      total === 0 ? [empty("No instrument matches.")] : [],
    );
    const [first] = found;
    if (first) {
      this.#book.suggest(wantedOf(first));
    }
  }
}

/** An instrument, and whether its symbol is that of another one, too. */
interface Listed {
  instrument: Instrument;
  isOneOfSeveral: boolean;
}

function listed(found: Instrument[]): Listed[] {
  const count = new Map<string, number>();
  for (const { symbol } of found) {
    count.set(symbol, (count.get(symbol) ?? 0) + 1);
  }
  return found.map((instrument) => {
    const isOneOfSeveral = instrument.symbol !== "" && (count.get(instrument.symbol) ?? 0) > 1;
    return { instrument, isOneOfSeveral };
  });
}

class InstrumentRow implements Row<Listed> {
  readonly element: HTMLElement;
  readonly #link = h("a", {});
  readonly #state = h("span", { class: "cell", role: "cell" });
  readonly #updated = h("span", { class: "cell num", role: "cell" });

  constructor() {
    const name = h("span", { class: "cell", role: "cell" }, this.#link);
    this.element = h(
      "div",
      { class: "row instrument", role: "row" },
      name,
      this.#state,
      this.#updated,
    );
  }

  show({ instrument: one, isOneOfSeveral }: Listed): void {
    const name = one.symbol || one.security_id;
    text(this.#link, isOneOfSeveral ? `${name} ${one.security_id}` : name);
    attribute(this.#link, "href", addressOf(wantedOf(one)));
    fill(this.#state, one.state, () => [stateMark(one.state)]);
    text(this.#updated, when(one.updated));
    attribute(this.#updated, "title", one.updated && `${moment(one.updated)} UTC`);
  }
}
