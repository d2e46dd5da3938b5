// One instrument: its ladder, trades and state, now or as of any moment of the log.

import * as api from "./api";
import type { Book, Books, Instrument, Level } from "./api";
import { attribute, fill, h, text } from "./dom";
import { counted, moment, NONE, today, WAITING, when, whole } from "./format";
import { stateMark } from "./state";
import type { Plant } from "./plant";
import { empty } from "./view";

const DEPTHS = [5, 10, 20, 50];
/** So many positions has the slider. */
const STEPS = 10_000;

/** The parameters of an address that say which book, and as of which moment; empty: now. */
const PARAMETERS = ["symbol", "feed", "security_id", "number", "at"] as const;

export type Wanted = Record<(typeof PARAMETERS)[number], string>;

/** The book in an address. */
export function wantedIn(query: URLSearchParams): Wanted {
  const values = PARAMETERS.map((name) => [name, query.get(name) ?? ""]);
  return Object.fromEntries(values) as Wanted;
}

/** The present book of an instrument. Several may have one symbol: its ID and number tell which. */
export function wantedOf(one: Instrument): Wanted {
  const { feed, security_id } = one;
  const symbol = one.symbol || security_id;
  return { symbol, feed, security_id, number: String(one.number), at: "" };
}

/** The address of a book, so that it can be sent to somebody. */
export function addressOf(wanted: Wanted): string {
  const given = Object.entries(wanted).filter(([, value]) => value !== "");
  return `#/instruments?${new URLSearchParams(given)}`;
}

const kindOf = (wanted: Wanted) => (wanted.at === "" ? "now" : "past");
const instrumentOf = (wanted: Wanted) => addressOf({ ...wanted, at: "" });

export class BookPart {
  readonly element = h("section", { class: "book", "aria-label": "Selected instrument" });
  readonly #plant: Plant;
  readonly #title = h("h2", {});
  readonly #others = h("div", {});
  readonly #state = h("p", { class: "says", role: "status" });
  readonly #ladder = h("div", { class: "ladder" });
  readonly #trades = h("div", {});
  readonly #values = h("div", {});
  readonly #wrong = h("div", { role: "alert" });
  readonly #content: HTMLElement;
  readonly #time: TimePart;
  readonly #depth = h(
    "select",
    { id: "depth" },
    ...DEPTHS.map((depth) => h("option", { selected: depth === 10 }, String(depth))),
  );
  #wanted = wantedIn(new URLSearchParams());
  /** Whether the address says which book. */
  #isOfAddress = false;
  /** The kinds of books that are asked for: of the past, which may take long, and of now. */
  readonly #asking = new Set<"past" | "now">();
  #isStale = false;

  constructor(plant: Plant) {
    this.#plant = plant;
    this.#time = new TimePart((at) => this.#go(at));
    this.#depth.addEventListener("change", () => this.#ask());
    this.#content = h(
      "div",
      {},
      h(
        "div",
        { class: "title" },
        this.#title,
        h("p", {}, h("label", { for: "depth" }, "Levels "), this.#depth),
      ),
      this.#others,
      this.#state,
      this.#time.element,
      this.#wrong,
      h("div", { class: "columns" }, this.#ladder, h("div", {}, this.#trades, this.#values)),
    );
    this.#content.hidden = true;
    this.element.append(this.#content);
  }

  /** Shows the book of the address, if that has one. */
  choose(wanted: Wanted): void {
    this.#isOfAddress = wanted.symbol !== "";
    this.#take(wanted);
  }

  /** Shows this book, unless the address has another one. */
  suggest(wanted: Wanted): void {
    if (!this.#isOfAddress) {
      this.#take(wanted);
    }
  }

  #take(wanted: Wanted): void {
    if (addressOf(wanted) !== addressOf(this.#wanted)) {
      const isOther = instrumentOf(wanted) !== instrumentOf(this.#wanted);
      this.#wanted = wanted;
      if (wanted.symbol === "") {
        this.#content.hidden = true;
      } else if (isOther && wanted.at !== "") {
        this.#without(wanted.symbol, WAITING);
      }
      this.#ask();
    }
  }

  update(): void {
    this.#time.range(this.#plant.log, this.#plant.missing("log"));
    if (this.#wanted.at === "") {
      this.#ask();
    }
  }

  /** Another moment, which the address has. */
  #go(at: string): void {
    this.#wanted = { ...this.#wanted, at };
    this.#isOfAddress = true;
    history.replaceState(null, "", addressOf(this.#wanted));
    this.#ask();
  }

  /** One question of a kind at a time: while the slider moves, those between are left out. */
  #ask(): void {
    const wanted = this.#wanted;
    if (wanted.symbol === "") {
      return;
    }
    const kind = kindOf(wanted);
    if (this.#asking.has(kind)) {
      this.#isStale = true;
      return;
    }
    this.#asking.add(kind);
    this.#isStale = false;
    const { symbol, feed, security_id, at } = wanted;
    const query = { symbol, feed, security_id, depth: this.#depth.value, at };
    if (at !== "") {
      this.#time.say(WAITING);
    }
    // Another instrument may be wanted meanwhile, or the book of now.
    const isWanted = () =>
      instrumentOf(this.#wanted) === instrumentOf(wanted) && kindOf(this.#wanted) === kind;
    api
      .get<Books>("books", query, at === "" ? undefined : api.LONG)
      .then((books) => isWanted() && this.#show(books, wanted))
      .catch((error: Error) => isWanted() && this.#failed(error, wanted))
      .finally(() => {
        this.#asking.delete(kind);
        if (this.#isStale) {
          this.#ask();
        }
      });
  }

  #failed(error: Error, { symbol, at }: Wanted): void {
    const is404 = error instanceof api.Refused && error.status === 404;
    // A gateway that is gone is told above; the live book is asked for again.
    if (error instanceof api.Refused && error.status === 0 && at === "") {
      return;
    }
    this.#time.say(NONE);
    this.#without(
      symbol,
      is404 ? `The instrument ${symbol} is unknown.` : `The book is not available: ${error.message}.`,
    );
  }

  /** Shows why there is no book, and nothing of the book before. */
  #without(symbol: string, why: string): void {
    this.#content.hidden = false;
    fill(this.#title, ` ${symbol}`, () => [symbol]);
    fill(this.#wrong, why, () => [empty(why)]);
    this.#ladder.hidden = true;
    for (const part of [this.#others, this.#state, this.#trades, this.#values]) {
      fill(part, "", () => []);
    }
  }

  #show(books: Books, wanted: Wanted): void {
    const own = books.books.find((one) => String(one.number) === wanted.number);
    const book = own ?? books.books[0];
    fill(this.#wrong, "", () => []);
    this.#ladder.hidden = false;
    this.#content.hidden = false;
    this.#content.dataset["asked"] = `${wanted.symbol} ${wanted.at}`;
    this.#content.dataset["number"] = String(books.number);
    this.#time.show(books);
    if (!book) {
      this.#without(wanted.symbol, "The instrument is unknown at that time.");
      return;
    }
    const id =
      book.security_id && book.symbol && book.security_id !== book.symbol
        ? `  ${book.security_id}`
        : "";
    const name = nameOf(book);
    fill(this.#title, name + id + book.feed, () => [name, h("small", {}, `${id} ${book.feed}`)]);
    this.#showOthers(own ? 1 : books.books.length);
    const key = `${book.state} ${JSON.stringify(book.lacks)} ${book.rpt_seq} ${book.trading}`;
    fill(this.#state, key, () => [stateMark(book.state), `: ${explained(book)}`]);
    const levels = JSON.stringify([name, book.bids, book.offers, book.levels]);
    fill(this.#ladder, levels, () => [ladder(book)]);
    fill(this.#trades, today() + JSON.stringify(book.trades), () => trades(book));
    fill(this.#values, JSON.stringify(book.values), () => values(book));
  }

  /** Says so if what is shown is one of several that may be meant. */
  #showOthers(count: number): void {
    const says = `This is the first of ${whole(count)} instruments of this name; the list has all.`;
    fill(this.#others, String(count), () => [count > 1 && h("p", { class: "about" }, says)]);
  }
}

/** What a state means for the reader. */
function explained(book: Book): string {
  const seq = book.rpt_seq === null ? "" : ` RptSeq(83) ${whole(book.rpt_seq)}.`;
  const trading = book.trading === null ? "" : ` SecurityTradingStatus(326) ${book.trading}.`;
  const { lacks } = book;
  let why = "";
  if (lacks?.what === "snapshot") {
    why = lacks.after_fault
      ? " The book refused a change and needs a snapshot."
      : " The book needs a snapshot.";
  } else if (lacks?.what === "changes") {
    why = ` The changes ${whole(lacks.from)} to ${whole(lacks.to)} are missing.`;
  } else if (lacks?.what === "certainty") {
    why = ` Messages before MsgSeqNum(34) ${whole(lacks.below)} may be missing.`;
  } else if (lacks?.what === "channel") {
    why = " Messages of the channel are missing.";
  }
  const is: Record<string, string> = {
    live: "the book is complete.",
    recovering: "the book is incomplete.",
    stale: "the lines are silent, and the book may be out of date.",
    closed: "the instrument is not traded any more.",
    unheard: "the feed has said nothing about the book so far.",
  };
  return `${is[book.state] ?? ""}${why}${seq}${trading}`;
}

/** The name under which an instrument is shown: one without Symbol(55) has its SecurityID(48). */
function nameOf(book: Book): string {
  return book.symbol || book.security_id;
}

/** Bids and offers beside each other, best in the first row. */
function ladder(book: Book): HTMLElement {
  if (book.bids.length === 0 && book.offers.length === 0) {
    return empty("The book is empty.");
  }
  const most = Math.max(1, ...[...book.bids, ...book.offers].map((level) => level.size));
  const hasOrders = [...book.bids, ...book.offers].some((level) => level.orders !== undefined);
  const rows = [];
  for (let at = 0; at < Math.max(book.bids.length, book.offers.length); at += 1) {
    rows.push(
      h(
        "tr",
        {},
        ...side(book.bids[at], "bid", most, hasOrders),
        ...side(book.offers[at], "offer", most, hasOrders),
      ),
    );
  }
  const orders = hasOrders ? [h("th", { scope: "col" }, "Orders")] : [];
  const more = book.levels.bids + book.levels.offers - book.bids.length - book.offers.length;
  return h(
    "div",
    {},
    h(
      "table",
      { class: "levels" },
      h("caption", { class: "hidden" }, `Book of ${nameOf(book)}`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...orders,
          h("th", { scope: "col" }, "Size"),
          h("th", { scope: "col" }, "Bid"),
          h("th", { scope: "col" }, "Offer"),
          h("th", { scope: "col" }, "Size"),
          ...orders.map((head) => head.cloneNode(true)),
        ),
      ),
      h("tbody", {}, ...rows),
    ),
    more > 0 &&
      h(
        "p",
        { class: "about" },
        `The book has ${counted(book.levels.bids, "level")} of bids and ${whole(book.levels.offers)} of offers.`,
      ),
  );
}

function side(
  level: Level | undefined,
  of: "bid" | "offer",
  most: number,
  hasOrders: boolean,
): HTMLElement[] {
  const size = h("td", { class: `size ${of}` });
  if (level) {
    const bar = h("i", { class: "depth", "aria-hidden": "true" });
    bar.style.width = `${(level.size / most) * 100}%`;
    size.append(bar, h("span", {}, whole(level.size)));
  }
  const price = h("td", { class: `price ${of}` }, level?.price ?? "");
  const orders = hasOrders
    ? [h("td", { class: "orders" }, level?.orders === undefined ? "" : whole(level.orders))]
    : [];
  return of === "bid" ? [...orders, size, price] : [price, size, ...orders];
}

function trades(book: Book): HTMLElement[] {
  if (book.trades.length === 0) {
    return [h("h3", {}, "Trades"), empty("The book has no trades.")];
  }
  const row = (trade: Book["trades"][number]) =>
    h(
      "tr",
      {},
      h("td", {}, when(trade.time)),
      h("td", {}, trade.price),
      h("td", {}, whole(trade.size)),
    );
  const heads = ["Time, UTC", "Price", "Size"].map((name) => h("th", { scope: "col" }, name));
  return [
    h("h3", {}, "Trades"),
    h(
      "table",
      { class: "trades" },
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...book.trades.slice(0, 20).map(row)),
    ),
  ];
}

function values(book: Book): HTMLElement[] {
  if (book.values.length === 0) {
    return [];
  }
  const pairs = book.values.flatMap((value) => [
    h("dt", {}, value.name ?? `MDEntryType(269) ${value.type}`),
    h("dd", {}, value.price ?? (value.size === null ? NONE : whole(value.size))),
  ]);
  return [h("h3", {}, "Statistics"), h("dl", { class: "pairs" }, ...pairs)];
}

/** The slider over the log. */
class TimePart {
  readonly element: HTMLElement;
  readonly #go: (at: string) => void;
  readonly #slider = h("input", { type: "range", id: "as-of", min: 0, max: STEPS, value: STEPS });
  readonly #now = h("button", { type: "button" }, "Back to now");
  readonly #back = h("button", { type: "button" }, "Previous event");
  readonly #forth = h("button", { type: "button" }, "Next event");
  readonly #says = h("output", { for: "as-of" });
  readonly #ends = h("p", { class: "ends" }, h("span", {}), h("span", {}));
  readonly #none = h("div", {});
  readonly #tools: HTMLElement;
  #from = 0;
  #to = 0;
  #number = 0;
  #isLive = true;
  #isHeld = false;

  constructor(go: (at: string) => void) {
    this.#go = go;
    this.#slider.addEventListener("input", () => this.#moved());
    this.#slider.addEventListener("pointerdown", () => (this.#isHeld = true));
    // A touch that becomes a scroll of the page is cancelled, and does not end otherwise.
    for (const end of ["pointerup", "pointercancel"]) {
      this.#slider.addEventListener(end, () => (this.#isHeld = false));
    }
    this.#now.addEventListener("click", () => this.#go(""));
    this.#back.addEventListener("click", () => this.#go(String(Math.max(1, this.#number - 1))));
    this.#forth.addEventListener("click", () => this.#go(String(this.#number + 1)));
    this.#tools = h(
      "div",
      {},
      h("p", { class: "as-of" }, h("label", { for: "as-of" }, "As of "), this.#says),
      this.#slider,
      this.#ends,
      h("p", { class: "buttons" }, this.#back, this.#forth, this.#now),
    );
    this.element = h("div", { class: "time" }, this.#tools, this.#none);
  }

  /** The log reaches from here to there; without one, `missing` is why it is not known. */
  range(log: api.Log | null, missing: string | null): void {
    const has = log !== null && log.from !== null && log.to !== null;
    this.#tools.hidden = !has;
    const none = log
      ? "The log is empty."
      : (missing ??
        "This gateway keeps no log of market events; [history] in its configuration enables it.");
    fill(this.#none, has ? "" : none, () => [!has && h("p", { class: "about" }, none)]);
    if (!has || !log.from || !log.to) {
      return;
    }
    // While somebody looks back the ends stay, or the moment would move under the thumb.
    const isFirst = this.#to === 0;
    if (isFirst || (this.#isLive && !this.#isHeld)) {
      this.#from = Date.parse(log.from);
      this.#to = Date.parse(log.to);
      const [first, last] = this.#ends.children;
      if (first && last) {
        text(first, moment(log.from));
        text(last, moment(log.to));
      }
    }
  }

  /** Says this instead of the moment. */
  say(what: string): void {
    text(this.#says, what);
  }

  /** What is shown is as of this. */
  show(books: Books): void {
    this.#number = books.number;
    this.#isLive = books.live;
    this.#now.disabled = books.live;
    const at = books.time ? Date.parse(books.time) : null;
    if (!this.#isHeld && document.activeElement !== this.#slider) {
      const part =
        books.live || at === null ? 1 : (at - this.#from) / Math.max(1, this.#to - this.#from);
      this.#slider.value = String(Math.round(Math.min(Math.max(part, 0), 1) * STEPS));
    }
    const after = `after event ${whole(books.number)}`;
    const says = books.live ? `now, ${after}` : `${moment(books.time)} UTC, ${after}`;
    text(this.#says, says);
    attribute(this.#slider, "aria-valuetext", says);
  }

  #moved(): void {
    const part = Number(this.#slider.value) / STEPS;
    if (part >= 1) {
      this.#go("");
      return;
    }
    this.#isLive = false;
    const at = this.#from + part * (this.#to - this.#from);
    this.#go(new Date(at).toISOString());
  }
}
