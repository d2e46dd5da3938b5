// Line A against line B: who was first, by how much, and what each lost.

import type { Feed, Line } from "./api";
import { Chart } from "./chart";
import { fill, h, text } from "./dom";
import { bytes, counted, nanos, NONE, percent, rate, since, whole } from "./format";
import type { Plant } from "./plant";
import { marked, nothing, section, type View } from "./view";

export function lines(plant: Plant): View {
  return new Lines(plant);
}

class Lines implements View {
  readonly element = h("div", {}, h("h1", {}, "Lines"));
  readonly #body = h("div", {});
  readonly #feeds = new Map<string, FeedPart>();
  readonly #plant: Plant;

  constructor(plant: Plant) {
    this.#plant = plant;
    this.element.append(this.#body);
  }

  end(): void {
    this.#feeds.forEach((feed) => feed.end());
  }

  update(): void {
    const { feeds } = this.#plant;
    const missing = this.#plant.missing("lines");
    const key = feeds.map((feed) => [feed.channel, feed.kind, feed.lines.length]).join("|");
    fill(this.#body, feeds.length > 0 ? `feeds ${key}` : `none ${missing}`, () => {
      this.end();
      this.#feeds.clear();
      if (feeds.length === 0) {
        const todo =
          "Overview has the messages of producers; docs/gateway.md describes how a feed is received.";
        return [nothing(missing, "This gateway receives no feed.", todo)];
      }
      return feeds.map((feed) => {
        const part = new FeedPart(feed);
        this.#feeds.set(feed.channel, part);
        return part.element;
      });
    });
    for (const feed of feeds) {
      this.#feeds.get(feed.channel)?.update(feed, this.#plant);
    }
  }
}

/** The columns of a line: what they are called, their sentence, and the value. */
const COLUMNS: [string, string, (line: Line) => string][] = [
  ["Packets", "packets received on the line since the start", (line) => whole(line.packets)],
  ["Per second", "packets per second, over the last three seconds", (line) => rate(line.packets_per_s)],
  ["First", "packets that the line delivered before any other line", (line) => whole(line.first)],
  ["Duplicate", "packets that another line had delivered before", (line) => whole(line.duplicate)],
  [
    "Behind, mean",
    "mean delay of its duplicates behind the line that was first",
    (line) => (line.behind.count > 0 ? nanos(line.behind.mean_ns) : NONE),
  ],
  [
    "Behind, max",
    "longest delay of a duplicate behind the line that was first",
    (line) => (line.behind.count > 0 ? nanos(line.behind.max_ns) : NONE),
  ],
  ["Lost", "packets missing on the line", (line) => whole(line.lost)],
  ["Late", "packets that arrived after their content had been given up", (line) => whole(line.late)],
  ["Refused", "packets whose numbers could not be used", (line) => whole(line.refused)],
  ["Bytes", "bytes received on the line since the start", (line) => bytes(line.bytes)],
  [
    "Silent for",
    "time since the last packet of the line",
    (line) => (line.silence_ms === null ? "no packet yet" : since(line.silence_ms)),
  ],
];

/** One feed: a sentence, a bar of who was first, a table, charts. */
class FeedPart {
  readonly element: HTMLElement;
  readonly #says = h("p", { class: "says" });
  readonly #share = h("div", { class: "share" });
  readonly #table = h("tbody", {});
  readonly #rates = new Chart(
    "Packets per second",
    "Packets received on each line, over the last three seconds.",
    rate,
    1,
  );
  readonly #lost = new Chart(
    "Lost",
    "Packets missing on each line, since the start.",
    whole,
    5,
  );

  constructor(feed: Feed) {
    this.element = section(`Feed ${feed.channel}`, about(feed), this.#says);
    if (feed.lines.length > 0) {
      this.element.append(
        this.#share,
        this.#figures(feed),
        h("div", { class: "charts" }, this.#rates.element, this.#lost.element),
      );
    }
  }

  /** The table of the lines, and what its columns mean. */
  #figures(feed: Feed): HTMLElement {
    const head = COLUMNS.map(([name, about]) => h("th", { scope: "col", title: about }, name));
    const explained = COLUMNS.map(([name, about]) => [h("dt", {}, name), h("dd", {}, `${about}.`)]);
    return h(
      "div",
      {},
      h(
        "div",
        { class: "wide", tabindex: 0, role: "region", "aria-label": `Lines of ${feed.channel}` },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Line"), ...head)),
          this.#table,
        ),
      ),
      h(
        "details",
        {},
        h("summary", {}, "What the columns mean"),
        h("dl", { class: "terms" }, ...explained.flat()),
      ),
    );
  }

  end(): void {
    this.#rates.end();
    this.#lost.end();
  }

  update(feed: Feed, plant: Plant): void {
    text(this.#says, sentence(feed));
    if (feed.lines.length === 0) {
      return;
    }
    const changes = changesOf(feed);
    this.#showShare(changes);
    fill(this.#table, JSON.stringify(feed.lines), () => feed.lines.map(row));
    const drawn = (what: string) =>
      changes.slice(0, 4).map((line, index) => ({
        label: `line ${line.line}`,
        name: `${feed.channel} changes ${line.line} ${what}`,
        style: index + 1,
      }));
    this.#rates.update(plant.series, drawn("packets"));
    this.#lost.update(plant.series, drawn("lost"));
    this.#rates.element.hidden = changes.length === 0;
    this.#lost.element.hidden = changes.length === 0;
  }

  #showShare(changes: Line[]): void {
    const all = changes.reduce((sum, line) => sum + line.first, 0);
    this.#share.hidden = changes.length < 2 || all === 0;
    const key = changes.map((line) => `${line.line}${line.first}`).join();
    fill(this.#share, key, () =>
      changes.map((line, index) => {
        const part = h(
          "span",
          { class: `part line${index + 1}` },
          `${line.line} first ${percent(line.first, all)}`,
        );
        part.style.flexGrow = String(Math.max(line.first / all, 0.0001));
        return part;
      }),
    );
  }
}

function row(line: Line): HTMLElement {
  const isSilent = line.silence_ms === null || line.silence_ms > 5000;
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      h("b", {}, line.line),
      h("small", {}, `${line.use}, ${line.group}${line.source ? ` from ${line.source}` : ""}`),
    ),
    ...COLUMNS.map(([name, , value]) => {
      const mark = name === "Silent for" && isSilent && line.use === "changes";
      return h("td", {}, mark ? marked("act", value(line)) : value(line));
    }),
  );
}

const changesOf = (feed: Feed) => feed.lines.filter((line) => line.use === "changes");

/** Where a feed comes from, in a sentence or two. */
function about(feed: Feed): string {
  switch (feed.kind) {
    case "edge":
      return "Market events of other gateways, received over DDS.";
    case "file":
      return "Market events read from a file of DBN.";
    case "session":
      return feed.session?.logged_on
        ? "Market data that is requested in a session, which is logged on."
        : "Market data that is requested in a session, which is not logged on.";
    case "replay":
      return "Market events read from a log.";
    case "lines": {
      const count = changesOf(feed).length;
      const [all, other] = count === 2 ? ["Both", "the other"] : ["All", "another one"];
      const packets =
        count < 2
          ? "The packets of the feed arrive on one line."
          : `${all} lines deliver the same packets. The first copy of each packet is used, and ` +
            `a packet lost on one line comes from ${other}.`;
      return feed.lenient ? `${packets} Deviations from FAST are accepted.` : packets;
    }
  }
}

/** What the figures of a feed say, in a sentence or three. */
function sentence(feed: Feed): string {
  const events = `${counted(feed.events, "event")} so far.`;
  const lost = counted(feed.gaps, "message was", "messages were");
  switch (feed.kind) {
    case "edge":
      return feed.gaps === 0
        ? `${events} No message is lost.`
        : `${events} ${lost} delivered by no gateway.`;
    case "session": {
      const refused = feed.session?.refused ?? 0;
      return refused === 0
        ? events
        : `${events} ${counted(refused, "request was", "requests were")} refused.`;
    }
    case "file":
    case "replay":
      return events;
    case "lines":
      return ofLines(feed);
  }
}

/** The share of the fastest line, how late the others were, and what each lost. */
function ofLines(feed: Feed): string {
  const changes = changesOf(feed);
  const all = changes.reduce((sum, line) => sum + line.first, 0);
  const [fast, ...others] = changes.toSorted((a, b) => b.first - a.first);
  if (!fast || feed.lines.every((line) => line.packets === 0)) {
    return "No packet of this feed has arrived yet.";
  }
  const gaps =
    feed.gaps === 0
      ? "No message is lost."
      : `${counted(feed.gaps, "message was", "messages were")} on no line; only a replay or ` +
        "snapshots make up for the loss.";
  if (others.length === 0) {
    return `The feed has one line, and a packet lost on it is lost. ${gaps}`;
  }
  const by = others
    .filter((line) => line.behind.count > 0)
    .map((line) => `line ${line.line} was ${nanos(line.behind.mean_ns)} later on average`);
  const lost = changes.map((line) => `line ${line.line} lost ${whole(line.lost)}`);
  const first = `Line ${fast.line} was first with ${percent(fast.first, all)} of the packets`;
  return `${[first, ...by].join("; ")}. Of the packets, ${listed(lost)}. ${gaps}`;
}

/** "a, b and c". */
function listed(parts: string[]): string {
  const last = parts.at(-1) ?? "";
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(", ")} and ${last}`;
}
