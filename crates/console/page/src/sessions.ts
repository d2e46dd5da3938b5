// All sessions: found, sorted, looked at, ended.

import * as api from "./api";
import { nameOf, type Session } from "./api";
import { ask, show } from "./dialog";
import { attribute, fill, h, shape, text } from "./dom";
import { bytes, counted, moment, nanos, NONE, since, timeOfDay, WAITING, whole } from "./format";
import type { Plant } from "./plant";
import { Rows, type Row } from "./rows";
import { failed, nothing, type View } from "./view";

/** How often sessions are asked for, in ms for each thousand of them. */
const EACH = 1000;
/** The most sessions in one answer. */
const PAGE = 1000;
/** The longest Text(58) of a Logout. */
const TEXT = 256;
/** The most subscriptions in the details of a session. */
const SUBSCRIPTIONS = 20;

interface Column {
  key: string;
  name: string;
  about: string;
  value: (session: Session) => string;
  order: (session: Session) => string | number;
}

const plain = (value: number | null) => value ?? -1;

const COLUMNS: Column[] = [
  {
    key: "name",
    name: "Session",
    about: "CompID of the peer, or name or number of a client of DBN, and its user",
    value: nameOf,
    order: nameOf,
  },
  {
    key: "port",
    name: "Port",
    about: "producers send, consumers receive; dbn: clients of DBN, which receive",
    value: (s) => s.port,
    order: (s) => s.port,
  },
  {
    key: "peer",
    name: "Peer",
    about: "address of the peer",
    value: (s) => s.peer,
    order: (s) => s.peer,
  },
  {
    key: "lag",
    name: "Lag",
    about: "least age of the oldest byte queued for it",
    value: (s) => since(s.lag_ms),
    order: (s) => plain(s.lag_ms),
  },
  {
    key: "queue",
    name: "Queue",
    about: "bytes queued for it",
    value: (s) => bytes(s.queued_bytes),
    order: (s) => s.queued_bytes,
  },
  {
    key: "out",
    name: "Next out",
    about: "MsgSeqNum(34) of the next message to it",
    value: (s) => whole(s.next_sender),
    order: (s) => plain(s.next_sender),
  },
  {
    key: "in",
    name: "Next in",
    about: "MsgSeqNum(34) of the next message from it",
    value: (s) => whole(s.next_target),
    order: (s) => plain(s.next_target),
  },
  {
    key: "skipped",
    name: "Skipped",
    about: "messages left out for it because it read too slowly",
    value: (s) => whole(s.skipped),
    order: (s) => s.skipped,
  },
  {
    key: "heard",
    name: "Heard",
    about: "time since the last bytes from it",
    value: (s) => since(s.last_heard_ms),
    order: (s) => plain(s.last_heard_ms),
  },
];

/** Columns whose largest values come first. */
const LARGEST = new Set(["lag", "queue", "out", "in", "skipped", "heard"]);

const id = (session: Session) => `${session.port} ${session.session}`;

export function sessions(plant: Plant, query: URLSearchParams): View {
  return new Sessions(plant, query);
}

class Sessions implements View {
  readonly element: HTMLElement;
  readonly #plant: Plant;
  readonly #search = h("input", {
    type: "search",
    id: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "CompID, user or address",
  });
  readonly #port = h(
    "select",
    { id: "port" },
    h("option", { value: "" }, "all ports"),
    h("option", {}, "producers"),
    h("option", {}, "consumers"),
    h("option", {}, "dbn"),
  );
  readonly #count = h("p", { class: "count", role: "status" });
  readonly #none = h("div", {});
  readonly #failure = h("p", { class: "failure", role: "status" });
  readonly #heads = new Map<string, HTMLElement>();
  readonly #rows: Rows<Session>;
  readonly #unlisten: () => void;
  /** Null until there is an answer. */
  #all: Session[] | null = null;
  /** When that came, in ms. */
  #heard = 0;
  /** Why there is none. */
  #missing = WAITING;
  #order: string[] = [];
  #sort = "name";
  #turned = false;
  #asked = 0;
  #isAsking = false;
  #hasEnded = false;

  constructor(plant: Plant, query: URLSearchParams) {
    this.#plant = plant;
    const head = h(
      "div",
      { class: "row", role: "row" },
      ...COLUMNS.map((column) => this.#head(column)),
    );
    head.append(h("span", { role: "columnheader", class: "cell acts" }, "Actions"));
    const list = { heard: () => this.#heard, refresh: () => this.#refresh() };
    this.#rows = new Rows("Sessions", head, () => new SessionRow(list));
    this.element = h(
      "div",
      { class: "sessions" },
      h("h1", {}, "Sessions"),
      h(
        "p",
        { class: "about" },
        "The connected sessions, the progress of each, and its queue. A session with a growing queue reads too slowly; other sessions do not wait for it.",
      ),
      h(
        "div",
        { class: "tools", role: "search" },
        h("label", { for: "search" }, "Find "),
        this.#search,
        h("label", { for: "port" }, "at "),
        this.#port,
        this.#count,
      ),
      this.#failure,
      this.#rows.element,
      this.#none,
      this.#legend(),
    );
    this.#search.addEventListener("input", () => this.#show(true));
    this.#port.addEventListener("change", () => this.#show(true));
    this.#unlisten = plant.onChange((kind) => {
      if (kind === "session") {
        this.#asked = Math.min(this.#asked, Date.now() - EACH / 2);
      }
    });
    this.moved(query);
  }

  moved(query: URLSearchParams): void {
    const sort = query.get("sort");
    if (sort && COLUMNS.some((column) => column.key === sort)) {
      this.#sort = sort;
      this.#turned = false;
    }
    this.#search.value = query.get("find") ?? this.#search.value;
    this.#show(true);
  }

  end(): void {
    this.#hasEnded = true;
    this.#unlisten();
    this.#rows.end();
  }

  update(): void {
    const pages = Math.max(1, Math.ceil((this.#all?.length ?? 0) / PAGE));
    if (this.#plant.connection.is === "well" && Date.now() - this.#asked >= EACH * pages - 50) {
      this.#refresh();
    }
  }

  #refresh(): void {
    if (!this.#isAsking) {
      this.#isAsking = true;
      this.#asked = Date.now();
      this.#ask()
        .catch((error: Error) => this.#failed(error))
        .finally(() => (this.#isAsking = false));
    }
  }

  #failed(error: Error): void {
    this.#missing = `The sessions are not available: ${error.message}.`;
    failed(this.#failure, "The list", this.#all && error);
    this.#show(false);
    this.#plant.wake();
  }

  async #ask(): Promise<void> {
    const all: Session[] = [];
    let after: string | undefined;
    do {
      const query = { limit: PAGE, after };
      const page = await api.get<{ sessions: Session[]; next: string | null }>("sessions", query);
      all.push(...page.sessions);
      after = page.next ?? undefined;
    } while (after !== undefined && !this.#hasEnded);
    this.#all = all;
    this.#heard = Date.now();
    failed(this.#failure, "The list", null);
    this.#show(false);
  }

  #head(column: Column): HTMLElement {
    const press = () => {
      this.#turned = this.#sort === column.key && !this.#turned;
      this.#sort = column.key;
      this.#show(true);
    };
    const button = h(
      "button",
      { type: "button", title: column.about, onclick: press },
      column.name,
    );
    const cell = h("span", { role: "columnheader", class: `cell ${column.key}` }, button);
    this.#heads.set(column.key, cell);
    return cell;
  }

  /** Sorted, except while somebody points at a row: it must not move away under the pointer. */
  #sorted(found: Session[], anew: boolean): Session[] {
    const held = this.#rows.element.querySelector(".row:hover .acts:hover, .row :focus-visible");
    const column = COLUMNS.find((one) => one.key === this.#sort) ?? COLUMNS[0]!;
    const sign = LARGEST.has(column.key) !== this.#turned ? -1 : 1;
    const place = new Map(this.#order.map((name, index) => [name, index]));
    const keyed = found.map((session) => {
      const name = id(session);
      const at = place.get(name) ?? Number.MAX_SAFE_INTEGER;
      return { session, name, at, key: column.order(session) };
    });
    // In the order of before, which is cheap; what is nearly sorted is sorted soon.
    keyed.sort((a, b) => a.at - b.at);
    if (anew || !held || this.#order.length === 0) {
      keyed.sort((a, b) => sign * compare(a.key, b.key) || compare(a.name, b.name));
    }
    return keyed.map((one) => one.session);
  }

  #show(anew: boolean): void {
    const wanted = this.#search.value.trim().toLowerCase();
    const port = this.#port.value;
    const fits = (session: Session) => {
      const { session: name, sender, user, peer } = session;
      const words = `${name} ${sender} ${user} ${peer}`.toLowerCase();
      return (port === "" || session.port === port) && words.includes(wanted);
    };
    const known = this.#all ?? [];
    const found = this.#sorted(known.filter(fits), anew);
    this.#order = found.map(id);
    this.#rows.set(found);
    for (const [key, head] of this.#heads) {
      const falling = LARGEST.has(key) !== this.#turned;
      const sorted = falling ? "descending" : "ascending";
      attribute(head, "aria-sort", key === this.#sort ? sorted : null);
    }
    const all = this.#all ? counted(known.length, "session") : "";
    text(this.#count, found.length === known.length ? all : `${whole(found.length)} of ${all}`);
    this.#rows.element.hidden = known.length === 0;
    const missing = this.#all ? null : this.#missing;
    fill(this.#none, `${known.length === 0} ${missing}`, () =>
      known.length === 0
        ? [
            nothing(
              missing,
              "No session is logged on.",
              "Overview has the addresses at which the gateway listens.",
            ),
          ]
        : [],
    );
  }

  #legend(): HTMLElement {
    const terms = COLUMNS.flatMap((column) => [
      h("dt", {}, column.name),
      h("dd", {}, `${column.about}.`),
    ]);
    const may = api.maySteer()
      ? "Log out sends a Logout(5) and waits for the answer; Disconnect closes the connection at once. Both are written to the audit file."
      : "The page is read only without token_file in [console]. fanfare ctl ends sessions on the gateway's own machine.";
    return h(
      "details",
      {},
      h("summary", {}, "What the columns mean"),
      h("dl", { class: "terms" }, ...terms),
      h("p", {}, may),
    );
  }
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") {
    return a - b;
  }
  return names.compare(String(a), String(b));
}

/** C2 stands in front of C10. */
const names = new Intl.Collator("en", { numeric: true });

/** What a row knows of its list. */
interface List {
  /** When its sessions came, in ms. */
  heard: () => number;
  refresh: () => void;
}

class SessionRow implements Row<Session> {
  readonly element: HTMLElement;
  readonly #cells: [Column, Element][] = [];
  readonly #state = h("span", { class: "state" });
  readonly #user = h("small", {});
  readonly #acts: HTMLButtonElement[] = [];
  #session: Session | null = null;

  constructor(list: List) {
    const changed = list.refresh;
    this.element = h("div", { class: "row", role: "row" });
    for (const column of COLUMNS) {
      const value = h(column.key === "name" ? "button" : "span", {
        type: column.key === "name" ? "button" : undefined,
      });
      const cell = h(
        "span",
        { role: "cell", class: `cell ${column.key}`, "data-name": column.name },
        value,
      );
      if (column.key === "name") {
        value.addEventListener("click", () => this.#session && details(this.#session, list));
        cell.prepend(this.#state);
        cell.append(this.#user);
      }
      this.#cells.push([column, value]);
      this.element.append(cell);
    }
    const acts = h("span", { role: "cell", class: "cell acts" });
    if (api.maySteer()) {
      this.#acts = [
        h(
          "button",
          { type: "button", onclick: () => this.#session && logout(this.#session, changed) },
          "Log out",
        ),
        h(
          "button",
          { type: "button", onclick: () => this.#session && disconnect(this.#session, changed) },
          "Disconnect",
        ),
      ];
      acts.append(...this.#acts);
    }
    this.element.append(acts);
  }

  show(session: Session): void {
    const isOther = this.#session === null || id(this.#session) !== id(session);
    this.#session = session;
    for (const [column, value] of this.#cells) {
      text(value, column.value(session));
    }
    text(this.#user, session.user);
    const is = session.logged_on ? "good" : "watch";
    fill(this.#state, is, () => [
      shape(is),
      h("span", { class: "hidden" }, session.logged_on ? "logged on" : "logging on or out"),
    ]);
    attribute(this.element, "data-lags", (session.lag_ms ?? 0) > 2000 ? "true" : null);
    if (isOther) {
      this.element.dataset["session"] = session.session;
      for (const button of this.#acts) {
        button.setAttribute("aria-label", `${button.textContent} ${nameOf(session)}`);
      }
    }
  }
}

const isDbn = (session: Session) => session.schemas !== undefined;

/** Names one session to the API. */
const which = ({ port, session }: Session) => ({ port, session });

type Ended = { sessions: number; forced: number };

function ended({ sessions, forced }: Ended): string {
  const how = forced > 0 ? `, ${forced} of them without an answer` : "";
  return `Done: ${counted(sessions, "session")} ended${how}.`;
}

function logout(session: Session, changed: () => void): void {
  const gets = isDbn(session) ? "an error record" : "a Logout(5)";
  ask({
    title: `Log out ${nameOf(session)}?`,
    about: `${session.session} at ${session.peer} receives ${gets}. Most clients log on again at once.`,
    yes: "Log out",
    field: {
      label: isDbn(session) ? "Text of the error record" : "Text(58) of the Logout(5)",
      value: "logged out by the operator",
      most: TEXT,
    },
    act: async (said) => {
      const done = await api.post<Ended>("sessions/logout", { ...which(session), text: said });
      changed();
      return ended(done);
    },
  });
}

function disconnect(session: Session, changed: () => void): void {
  ask({
    title: `Disconnect ${nameOf(session)}?`,
    about: `The connection of ${session.session} at ${session.peer} is closed without a message. This ends a session that does not answer; log out any other.`,
    yes: "Disconnect",
    act: async () => {
      const done = await api.post<Ended>("sessions/disconnect", which(session));
      changed();
      return ended(done);
    },
  });
}

function ofFix(session: Session): [string, string][] {
  const heard = session.last_heard_ms === null ? NONE : `${since(session.last_heard_ms)} ago`;
  const took = session.round_trip_us;
  const trip = took === null ? "not measured: see sessions test-request" : nanos(took * 1000);
  return [
    ["Next MsgSeqNum(34) to it", whole(session.next_sender)],
    ["Next MsgSeqNum(34) from it", whole(session.next_target)],
    ["Lag", since(session.lag_ms)],
    ["Last heard", heard],
    ["Round trip of a TestRequest", trip],
    ["Updates merged", whole(session.conflated)],
    ["Messages skipped", whole(session.skipped)],
  ];
}

function ofDbn(session: Session): [string, string][] {
  return [
    ["Schemas", session.schemas?.join(", ") || NONE],
    ["Instruments subscribed individually", whole(session.instruments)],
    ["Records skipped", whole(session.skipped)],
  ];
}

/** All that was known of a session when the list came, and its subscriptions. */
function details(session: Session, list: List): void {
  const pairs: [string, string][] = [
    ["Session", session.session],
    ["User", session.user || "none"],
    ["Port", session.port],
    ["Peer", session.peer],
    ["Since", `${moment(session.since)} UTC`],
    ["State", session.logged_on ? "logged on" : "logging on or out"],
    ["Queue", bytes(session.queued_bytes)],
    ...(isDbn(session) ? ofDbn(session) : ofFix(session)),
  ];
  const subscriptions = h("div", {});
  const act = (what: (session: Session, changed: () => void) => void) => () => {
    dialog.close();
    what(session, list.refresh);
  };
  const dialog: HTMLDialogElement = show(
    nameOf(session),
    h("p", { class: "about" }, `As of ${timeOfDay(list.heard())} UTC.`),
    h(
      "dl",
      { class: "pairs" },
      ...pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
    subscriptions,
    h(
      "p",
      { class: "buttons" },
      h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Close"),
      api.maySteer() &&
        h("button", { class: "danger", type: "button", onclick: act(logout) }, "Log out"),
      api.maySteer() &&
        h("button", { class: "danger", type: "button", onclick: act(disconnect) }, "Disconnect"),
    ),
  );
  void subscribed(session, subscriptions);
}

/** Shows the subscriptions of a consumer of FIX; others have none. */
async function subscribed(session: Session, into: HTMLElement): Promise<void> {
  if (session.port !== "consumers") {
    return;
  }
  into.replaceChildren(h("p", {}, WAITING));
  const query = { session: session.session, limit: SUBSCRIPTIONS };
  type Found = { total: number; subscriptions: api.Subscription[] };
  try {
    const found = await api.get<Found>("subscriptions", query);
    into.replaceChildren(...subscriptionList(found.total, found.subscriptions));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    into.replaceChildren(h("p", {}, `The subscriptions are not available: ${why}.`));
  }
}

function subscriptionList(total: number, some: api.Subscription[]): HTMLElement[] {
  const item = (one: api.Subscription) => {
    const what = [...one.patterns, ...one.symbols].join(" ");
    const depth = one.depth === 0 ? "all levels" : counted(one.depth, "level");
    const about = `${counted(one.instruments, "instrument")}, ${depth}, ${one.contract}`;
    return h("li", {}, h("b", {}, one.request), ` ${what}: ${about}`);
  };
  const first = some.length < total ? `, the first ${whole(some.length)}` : "";
  const heading = total === 0 ? "No subscriptions" : counted(total, "subscription") + first;
  return [h("h3", {}, heading), h("ul", {}, ...some.map(item))];
}
