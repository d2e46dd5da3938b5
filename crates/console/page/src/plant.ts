// What is known of the gateway: asked for once a second, and kept here for all views.

import * as api from "./api";
import { WAITING } from "./format";
import { Series } from "./series";
import { inOrder } from "./stages";

/** How often figures are asked for, in ms: while the page is looked at, and while it is not. */
const EACH = 1000;
const HIDDEN = 5000;
/** The longest pause between two tries when the gateway is gone, in ms. */
const PAUSE = 5000;
/** Older readings of counters are kept for so long, in ms, one in ten seconds. */
const WINDOW = 5 * 60_000;
const APART = 10_000;
/** How many notices are kept. */
const NOTICES = 1000;

export type Connection =
  | { is: "beginning" }
  | { is: "well" }
  | { is: "locked"; wrong: boolean }
  | { is: "gone"; why: string; since: number };

interface Reading {
  at: number;
  counters: Map<string, number>;
}

/** Everything that was heard of a gateway, and who listens for more. */
export class Plant {
  connection: Connection = { is: "beginning" };
  /** When the last answer came, by this browser's clock, in ms. */
  heard = 0;
  /** When a gateway that is running now was first seen here. */
  opened = Date.now();
  /** How often a gateway was seen to begin again. */
  restarts = 0;
  status: api.Status | null = null;
  feeds: api.Feed[] = [];
  log: api.Log | null = null;
  stages: api.Stage[] = [];
  notices: api.Notice[] = [];
  /** The notices since its start that the gateway itself has left out. */
  leftOut = 0;
  /** That parts of the state are not available, and why, by the part's name. */
  readonly refusals = new Map<string, string>();
  /** The parts of the state of which the gateway has said what it has. */
  readonly #told = new Set<string>();
  /** The sessions that lag most, worst first. */
  worst: api.Session[] = [];
  /** The bytes in the longest queue, where no session lags measurably; otherwise 0. */
  longest = 0;
  /** Sums over all that count a thing, by the thing's name. */
  counters = new Map<string, number>();
  /** Help texts of counters by name. */
  help = new Map<string, string>();
  readonly series = new Series();

  /** Since when a condition holds, by its name. */
  readonly since = new Map<string, number>();
  #readings: Reading[] = [];
  #before: Reading | null = null;
  /** When the counters came, in ms. */
  #counted = 0;
  #names = new Map<string, string>();
  /** What the gateway can be asked for. */
  #offers = new Set<string>();
  #listeners = new Set<() => void>();
  #changed = new Set<(kind: string) => void>();
  #turn = 0;
  /** The newest notice of an answer, up to which all are known. The stream has not all of them. */
  #noticed = 0;
  #tries = 0;
  #stream: AbortController | null = null;
  #wake: () => void = () => {};

  /** Calls `listener` behind each turn, until the function that is returned is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls `listener` with the kind of each change that the gateway tells of at once. */
  onChange(listener: (kind: string) => void): () => void {
    this.#changed.add(listener);
    return () => this.#changed.delete(listener);
  }

  /** Asks now instead of at the next turn. */
  wake(): void {
    this.#wake();
  }

  /** Asks now, with another token. */
  begin(): void {
    this.connection = { is: "beginning" };
    this.wake();
  }

  /** Asks for ever. */
  async run(): Promise<void> {
    document.addEventListener("visibilitychange", () => {
      if (!isVisible()) {
        this.#leave();
      }
      this.wake();
    });
    for (;;) {
      const isLocked = api.needsToken && api.token.get() === null;
      if (!isLocked) {
        await this.#look();
      } else if (this.connection.is !== "locked") {
        this.connection = { is: "locked", wrong: false };
      }
      for (const listener of this.#listeners) {
        listener();
      }
      await this.#pause(isLocked ? 1e9 : this.#wait());
    }
  }

  #wait(): number {
    if (this.connection.is === "gone") {
      return Math.min(EACH * 2 ** (this.#tries - 1), PAUSE);
    }
    return isVisible() ? EACH : HIDDEN;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(ms, 2 ** 30));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #look(): Promise<void> {
    try {
      await this.#ask();
      this.connection = { is: "well" };
      this.heard = Date.now();
      this.#tries = 0;
      this.#turn += 1;
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (error instanceof api.Refused && error.status === 401) {
      api.token.forget();
      this.#leave();
      this.connection = { is: "locked", wrong: true };
      return;
    }
    const why = error instanceof Error ? error.message : String(error);
    const since = this.connection.is === "gone" ? this.connection.since : Date.now();
    this.connection = { is: "gone", why, since };
    this.#tries += 1;
    this.#before = null;
    this.series.push(Date.now() / 1000, new Map());
  }

  async #ask(): Promise<void> {
    const status = await api.get<api.Status>("status");
    if (this.status && this.status.run !== status.run) {
      this.#reset();
    }
    this.status = status;
    const isSlow = this.#turn % 2 === 0;
    if (this.#turn === 0) {
      this.#offers = await api.offers();
    }
    if (this.#turn % 60 === 0) {
      this.#learn(await api.metrics());
    }
    const asked = [
      this.#maybe<{ feeds: api.Feed[] }>("lines", {}, (all) => (this.feeds = all?.feeds ?? [])),
      api.get<Record<string, number>>("counters").then((all) => this.#count(all)),
    ];
    if (isSlow) {
      asked.push(
        this.#maybe<api.Stage[]>("stages", {}, (all) => (this.stages = inOrder(all ?? []))),
        this.#maybe<api.Log>("log", {}, (log) => (this.log = log)),
        this.#slowest(),
        this.#news(),
      );
    }
    await Promise.all(asked);
    this.#measure();
    this.#follow();
  }

  /** Another process than before: what was counted begins anew. */
  #reset(): void {
    this.restarts += 1;
    this.opened = Date.now();
    this.#readings = [];
    this.#before = null;
    this.feeds = [];
    this.log = null;
    this.stages = [];
    this.worst = [];
    this.longest = 0;
    this.notices = [];
    this.leftOut = 0;
    this.#noticed = 0;
    this.refusals.clear();
    this.#told.clear();
    this.since.clear();
    this.#turn = 0;
  }

  /** Asks for what a gateway may not have, or may refuse; then `take` gets null. */
  async #maybe<T>(
    what: string,
    query: Record<string, string | number>,
    take: (answer: T | null) => void,
  ): Promise<void> {
    const has = this.#offers.has(what) && (what !== "log" || this.status?.history === true);
    let answer: T | null = null;
    try {
      answer = has ? await api.get<T>(what, query) : null;
      this.refusals.delete(what);
      this.#told.add(what);
    } catch (error) {
      // One part that is not available is not the gateway.
      if (!(error instanceof api.Refused) || ![400, 404, 409].includes(error.status)) {
        throw error;
      }
      this.refusals.set(what, `\`${what}\` is not available: ${error.message}`);
    }
    take(answer);
  }

  /** Why a part of the state is not known here; null if the gateway has told it. */
  missing(what: string): string | null {
    const refusal = this.refusals.get(what);
    if (refusal !== undefined) {
      return `${refusal}.`;
    }
    return this.#told.has(what) ? null : WAITING;
  }

  /** Asks for the sessions that lag; of clients of DBN the queue alone is known. */
  async #slowest(): Promise<void> {
    const by = (sort: string, limit: number, take: (found: api.Session[]) => void) =>
      this.#maybe<{ sessions: api.Session[] }>("sessions", { sort, limit }, (all) => {
        take(Array.isArray(all?.sessions) ? all.sessions : []);
      });
    await by("lag", 5, (worst) => (this.worst = worst));
    this.longest = 0;
    if (this.worst.length > 0 && this.worst.every((session) => !session.lag_ms)) {
      await by("queue", 1, ([first]) => (this.longest = first?.queued_bytes ?? 0));
    }
  }

  async #news(): Promise<void> {
    const query = { limit: NOTICES, after: this.#noticed };
    await this.#maybe<{ notices: api.Notice[]; left_out: number }>("notices", query, (all) => {
      const notices = all?.notices ?? [];
      this.leftOut = all?.left_out ?? 0;
      this.#take(notices);
      this.#noticed = Math.max(this.#noticed, notices[0]?.id ?? 0);
    });
  }

  /** Takes notices that may have come before, and between others. */
  #take(notices: api.Notice[]): void {
    const known = new Set(this.notices.map((notice) => notice.id));
    const fresh = notices.filter((notice) => !known.has(notice.id));
    if (fresh.length > 0) {
      const all = [...fresh, ...this.notices].sort((a, b) => b.id - a.id);
      this.notices = all.slice(0, NOTICES);
    }
  }

  /** Names and help texts from Prometheus's format. */
  #learn(metrics: string): void {
    for (const line of metrics.split("\n")) {
      const [, name, help] = line.match(/^# HELP fanfare_(\w+) (.*)$/) ?? [];
      if (name !== undefined && help !== undefined) {
        const own = name.replace(/_total$/, "");
        this.help.set(own, help);
        // Prometheus has times in seconds, the counters in the unit that their names have.
        for (const unit of own.endsWith("_seconds") ? ["ns", "us", "ms"] : []) {
          this.help.set(own.replace(/seconds$/, unit), help);
        }
      }
    }
    this.#names.clear();
  }

  /** The counter's name in a label, which has what counts it in front. */
  #name(label: string): string {
    let name = this.#names.get(label);
    if (name === undefined) {
      let at = -1;
      do {
        name = label.slice(at + 1).replace(/\W/g, "_");
        at = label.indexOf("_", at + 1);
      } while (at >= 0 && !this.help.has(name));
      name = this.help.has(name) ? name : label;
      this.#names.set(label, name);
    }
    return name;
  }

  #count(all: Record<string, number>): void {
    const sums = new Map<string, number>();
    for (const [label, value] of Object.entries(all)) {
      const name = this.#name(label);
      sums.set(name, (sums.get(name) ?? 0) + value);
    }
    this.counters = sums;
    const now = Date.now();
    this.#counted = now;
    const last = this.#readings.at(-1);
    if (!last || now - last.at >= APART) {
      this.#readings.push({ at: now, counters: sums });
      this.#readings = this.#readings.filter((reading) => now - reading.at <= WINDOW + APART);
    }
  }

  /** A counter's value; 0 where nothing counts that. */
  value(name: string): number {
    return this.counters.get(name) ?? 0;
  }

  /** By how much counters have grown within five minutes, or since the page was opened. */
  grown(...names: string[]): number {
    const oldest = this.#readings[0];
    const by = (name: string) => this.value(name) - (oldest?.counters.get(name) ?? 0);
    return oldest ? names.reduce((sum, name) => sum + Math.max(by(name), 0), 0) : 0;
  }

  /** For how long a condition holds, in ms; 0 where it does not. */
  holds(what: string, is: boolean): number {
    if (!is) {
      this.since.delete(what);
      return 0;
    }
    const now = Date.now();
    const since = this.since.get(what) ?? now;
    this.since.set(what, since);
    return now - since;
  }

  #measure(): void {
    const now = this.#counted;
    const before = this.#before;
    this.#before = { at: now, counters: this.counters };
    const values = new Map<string, number | null>();
    const perSecond = (name: string) => {
      const seconds = before ? (now - before.at) / 1000 : 0;
      const by = this.value(name) - (before?.counters.get(name) ?? 0);
      return seconds > 0 && by >= 0 ? by / seconds : null;
    };
    for (const name of ["received", "decoded", "deliveries", "market_events"]) {
      values.set(name, this.counters.has(name) ? perSecond(name) : null);
    }
    for (const feed of this.feeds) {
      for (const line of feed.lines) {
        const name = `${feed.channel} ${line.use} ${line.line}`;
        values.set(`${name} packets`, line.packets_per_s);
        values.set(`${name} lost`, line.lost);
        values.set(`${name} first`, line.first);
      }
    }
    for (const stage of this.stages) {
      const { p50_ns, p99_ns, count } = stage.windows["10s"];
      values.set(`${stage.of} ${stage.stage} p50`, count > 0 ? p50_ns : null);
      values.set(`${stage.of} ${stage.stage} p99`, count > 0 ? p99_ns : null);
    }
    this.series.push(now / 1000, values);
  }

  /**
   * Keeps the stream of changes open while the gateway answers and the page is looked at: a
   * browser opens six connections to a host for all its tabs, and each stream keeps one. Where
   * browsers have locks, one page of all has the stream; the others do with asking.
   */
  #follow(): void {
    if (this.#stream || !isVisible() || !this.#offers.has("changes")) {
      return;
    }
    const stream = new AbortController();
    this.#stream = stream;
    const each = (kind: string, data: unknown) => {
      if (kind === "notice") {
        this.#take([data as api.Notice]);
      }
      for (const listener of this.#changed) {
        listener(kind);
      }
    };
    const ended = () => {
      if (this.#stream === stream) {
        this.#stream = null;
      }
    };
    const follow = () => api.changes(stream.signal, each);
    const ifFree = { ifAvailable: true };
    const following =
      "locks" in navigator
        ? navigator.locks.request("fanfare.changes", ifFree, (own) => own && follow())
        : follow();
    following.then(ended, ended);
  }

  /** Ends the stream of changes. */
  #leave(): void {
    this.#stream?.abort();
    this.#stream = null;
  }
}

const isVisible = () => document.visibilityState === "visible";
