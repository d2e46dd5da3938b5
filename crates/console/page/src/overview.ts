// Is all well? And the figures that tell it.

import type { Feed } from "./api";
import { Chart, type Drawn } from "./chart";
import { fill, h, shape } from "./dom";
import { bytes, counted, nanos, NONE, rate, since, today, WAITING, when, whole } from "./format";
import { showFindings } from "./findings";
import { judge, LEFT_OUT, type Finding } from "./judge";
import type { Plant } from "./plant";
import { busiest } from "./stages";
import { Figure, section, type View } from "./view";

/** How many notices are shown here. */
const NOTICES = 6;

/** A figure as it is now. */
type Told = [id: string, name: string, value: string, about: string];

/** The one sentence that says how it is: nobody knows while the gateway does not answer. */
function headline(plant: Plant, found: Finding[]): [string, "good" | "act" | "watch" | "note"] {
  if (plant.connection.is === "gone") {
    return ["The gateway does not answer", "act"];
  }
  if (plant.connection.is !== "well") {
    return [WAITING, "note"];
  }
  const act = found.filter((one) => one.severity === "act").length;
  const watch = found.filter((one) => one.severity === "watch").length;
  if (act > 0) {
    return [counted(act, "problem to act on", "problems to act on"), "act"];
  }
  if (watch > 0) {
    return [`${counted(watch, "problem")} to watch, none to act on`, "watch"];
  }
  return ["All is well", "good"];
}

export function overview(plant: Plant): View {
  return new Overview(plant);
}

class Overview implements View {
  readonly element: HTMLElement;
  readonly #plant: Plant;
  readonly #verdict = h("h1", { class: "verdict", "aria-live": "polite" });
  readonly #findings = h("ul", { class: "findings" });
  readonly #grid = h("dl", { class: "figures" });
  readonly #notices = h("ol", { class: "notices short" });
  readonly #figures = new Map<string, Figure>();
  readonly #throughput = new Chart(
    "Messages per second",
    "Messages from producers and feeds, and messages to all consumers together.",
    rate,
    1,
  );
  readonly #latency = new Chart(
    "Latency in the gateway",
    "From the arrival of a message to its write to consumers' sockets, over the last ten seconds.",
    nanos,
    1_000,
  );

  constructor(plant: Plant) {
    this.#plant = plant;
    this.element = h(
      "div",
      { class: "overview" },
      h("div", { class: "state" }, this.#verdict, this.#findings),
      section("Figures", "The present figures of the gateway, each with its meaning.", this.#grid),
      h(
        "section",
        { class: "charts", "aria-label": "Charts" },
        this.#throughput.element,
        this.#latency.element,
      ),
      section("Latest notices", "The last notices of the gateway; times are UTC.", this.#notices),
    );
  }

  end(): void {
    this.#throughput.end();
    this.#latency.end();
  }

  update(): void {
    const found = judge(this.#plant);
    const [words, how] = headline(this.#plant, found);
    fill(this.#verdict, words, () => [shape(how), words]);
    this.#verdict.className = `verdict ${how}`;
    showFindings(this.#findings, found);
    this.#showFigures();
    this.#showCharts();
    this.#showNotices();
  }

  #showNotices(): void {
    const latest = this.#plant.notices.slice(0, NOTICES);
    const missing = this.#plant.missing("notices");
    // A notice may come behind a later one, and a process that starts begins with the first.
    const key = [this.#plant.opened, missing, today(), ...latest.map((one) => one.id)].join();
    fill(this.#notices, key, () =>
      latest.length === 0
        ? [h("li", { class: "empty" }, missing ?? "There are no notices yet.")]
        : latest.map((one) =>
            h(
              "li",
              {},
              h("time", { datetime: one.time }, when(one.time)),
              one.trouble ? shape("watch") : null,
              h("span", {}, one.text),
            ),
          ),
    );
  }

  /** Shows these figures, and none of before: what nobody tells any more has none. */
  #showFigures(): void {
    const told = [
      ...this.#sessions(),
      ...this.#market(),
      ...this.#consumers(),
      ...this.#log(),
      ...this.#dds(),
      ...this.#process(),
    ];
    const elements = told.map(([id, name, value, about]) => {
      const figure = this.#figures.get(id) ?? new Figure(id, name);
      this.#figures.set(id, figure);
      figure.set(value, about);
      return figure.element;
    });
    const isSame = elements.every((element, at) => element === this.#grid.children[at]);
    if (!isSame || elements.length !== this.#grid.children.length) {
      this.#grid.replaceChildren(...elements);
    }
  }

  #last(name: string): string {
    return rate(this.#plant.series.of(name).at(-1) ?? null);
  }

  #sessions(): Told[] {
    const ports = this.#plant.status?.ports ?? [];
    const each = ports.map((port): Told => {
      const what = port.name === "producers" ? "that send" : "that receive";
      const name = port.name === "dbn" ? "DBN" : port.name[0]?.toUpperCase() + port.name.slice(1);
      const about = `Sessions ${what}, of at most ${whole(port.most)}, at ${port.address}.`;
      return [`sessions-${port.name}`, name, whole(port.sessions), about];
    });
    const received = this.#last("received");
    return [...each, ["in", "In", received, "Messages from producers per second."]];
  }

  #market(): Told[] {
    const { feeds } = this.#plant;
    if (feeds.length === 0) {
      return [];
    }
    const sum = (of: (feed: Feed) => number) => feeds.reduce((all, feed) => all + of(feed), 0);
    const gaps = whole(sum((feed) => feed.gaps));
    const isDecoded = feeds.some((feed) => feed.messages !== null);
    const feed: Told = isDecoded
      ? ["decoded", "Feed", this.#last("decoded"), "Messages decoded per second, each once."]
      : ["events", "Events", this.#last("market_events"), "Market events per second."];
    const lost = "Messages of feeds that no line or no gateway delivered, since the start.";
    const told: Told[] = [feed, ["gaps", "Lost", gaps, lost]];
    const all = sum((feed) => feed.instruments);
    if (all > 0) {
      const live = `${whole(sum((feed) => feed.live))} of ${whole(all)}`;
      const about = "Instruments whose books are complete, of all instruments.";
      told.push(["live", "Live", live, about]);
    }
    return told;
  }

  #consumers(): Told[] {
    const plant = this.#plant;
    const out = "Messages written to all consumers together per second.";
    const told: Told[] = [["out", "Out", this.#last("deliveries"), out]];
    if (plant.worst.length > 0) {
      const lag = Math.max(0, ...plant.worst.map((one) => one.lag_ms ?? 0));
      const queued = plant.longest > 0 ? bytes(plant.longest) : "nothing queued";
      const about =
        lag > 0
          ? "Age of the oldest byte queued for the slowest session."
          : "Bytes queued for the session with the longest queue.";
      told.push(["slowest", "Slowest", lag > 0 ? since(lag) : queued, about]);
    }
    const left = "Messages left out for consumers that read too slowly, since the start.";
    const sum = LEFT_OUT.reduce((all, name) => all + plant.value(name), 0);
    return [...told, ["dropped", "Left out", whole(sum), left]];
  }

  #log(): Told[] {
    const { log } = this.#plant;
    if (!log) {
      return [];
    }
    const about = `Events in the log; ${bytes(log.bytes)} in ${log.folder}.`;
    return [
      ["log", "Log", whole(log.events), about],
      ["lag", "Log behind", whole(log.lag_events), "Events that are not yet in the log."],
    ];
  }

  #dds(): Told[] {
    const all = [
      ["published", "DDS", "Messages written to DDS since the start."],
      ["samples", "DDS samples", "Samples of decoded messages written to DDS since the start."],
    ] as const;
    return all.flatMap(([counter, name, about]): Told[] => {
      const value = this.#plant.value(counter);
      return value > 0 ? [[`dds-${counter}`, name, whole(value), about]] : [];
    });
  }

  #process(): Told[] {
    const { status } = this.#plant;
    const process = `fanfare ${status?.version ?? ""}, process ${status?.pid ?? ""}`;
    const up = status ? since(status.uptime_s * 1000) : NONE;
    return [["uptime", "Up", up, `Time since the start of ${process}.`]];
  }

  #showCharts(): void {
    const { series, counters, stages } = this.#plant;
    const rates: Drawn[] = [];
    if (counters.has("received")) {
      rates.push({ label: "from producers", name: "received", style: 1 });
    }
    if (counters.has("decoded")) {
      rates.push({ label: "from feeds", name: "decoded", style: 3 });
    }
    rates.push({ label: "to consumers", name: "deliveries", style: 2 });
    this.#throughput.update(series, rates);
    const outlet = busiest(stages);
    this.#latency.element.hidden = outlet === undefined;
    if (outlet) {
      const name = `${outlet.of} total`;
      this.#latency.update(series, [
        { label: `${outlet.of}: median`, name: `${name} p50`, style: 1 },
        { label: "99th percentile", name: `${name} p99`, style: 2 },
      ]);
    }
  }
}
