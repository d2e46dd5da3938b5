// Is all well? And the figures that tell it.

import { Chart, type Drawn } from "./chart";
import { fill, h, shape } from "./dom";
import { bytes, clock, counted, nanos, NONE, rate, since, whole } from "./format";
import { showFindings } from "./findings";
import { judge, type Finding } from "./judge";
import type { Plant } from "./plant";
import { busiest } from "./stages";
import { Figure, section, type View } from "./view";

/** How many notices are shown here. */
const NOTICES = 6;

/** The one sentence that says how it is. */
function headline(found: Finding[]): [string, "good" | "act" | "watch"] {
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
  );
  readonly #latency = new Chart(
    "Latency in the gateway",
    "From the arrival of a message to its write to consumers' sockets, over the last ten seconds.",
    nanos,
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
    const [words, how] = headline(found);
    fill(this.#verdict, words, () => [shape(how), words]);
    this.#verdict.className = `verdict ${how}`;
    showFindings(this.#findings, found);
    this.#showFigures();
    this.#showCharts();
    const latest = this.#plant.notices.slice(0, NOTICES);
    fill(this.#notices, `n${latest[0]?.id ?? ""}`, () =>
      latest.length === 0
        ? [h("li", { class: "empty" }, "There are no notices yet.")]
        : latest.map((one) =>
            h(
              "li",
              {},
              h("time", { datetime: one.time }, clock(one.time)),
              one.trouble ? shape("watch") : null,
              h("span", {}, one.text),
            ),
          ),
    );
  }

  #set(name: string, about: string, value: string, id: string): void {
    let figure = this.#figures.get(name);
    if (!figure) {
      figure = new Figure(name, about, id);
      this.#figures.set(name, figure);
      this.#grid.append(figure.element);
    }
    figure.set(value);
  }

  #showFigures(): void {
    const plant = this.#plant;
    const last = (name: string) => plant.series.of(name).at(-1) ?? null;
    const { status, log, feeds } = plant;
    for (const port of status?.ports ?? []) {
      const what = port.name === "producers" ? "that send" : "that receive";
      const name = port.name[0]?.toUpperCase() + port.name.slice(1);
      const about = `Sessions ${what}, of at most ${whole(port.most)}, at ${port.address}.`;
      this.#set(name, about, whole(port.sessions), `sessions-${port.name}`);
    }
    this.#set("In", "Messages from producers per second.", rate(last("received")), "in");
    if (feeds.length > 0) {
      const live = feeds.reduce((sum, feed) => sum + feed.live, 0);
      const all = feeds.reduce((sum, feed) => sum + feed.instruments, 0);
      const gaps = feeds.reduce((sum, feed) => sum + feed.gaps, 0);
      this.#set("Feed", "Messages decoded per second, each once.", rate(last("decoded")), "decoded");
      this.#set(
        "Lost",
        "Messages of feeds that were on no line, since the start.",
        whole(gaps),
        "gaps",
      );
      if (all > 0) {
        const about = "Instruments whose books are complete, of all instruments.";
        this.#set("Live", about, `${whole(live)} of ${whole(all)}`, "live");
      }
    }
    const out = "Messages written to all consumers together per second.";
    this.#set("Out", out, rate(last("deliveries")), "out");
    const [worst] = plant.worst;
    if (worst) {
      const lag = Math.max(0, ...plant.worst.map((one) => one.lag_ms ?? 0));
      const about = "Age of the oldest byte queued for the slowest session.";
      this.#set("Slowest", about, lag === 0 ? "nothing queued" : since(lag), "slowest");
    }
    const dropped = plant.value("dropped");
    const left = "Messages left out for consumers that read too slowly, since the start.";
    this.#set("Left out", left, whole(dropped), "dropped");
    if (log) {
      const about = `Events in the log; ${bytes(log.bytes)} in ${log.folder}.`;
      this.#set("Log", about, whole(log.events), "log");
      const behind = "Events that are not yet in the log.";
      this.#set("Log behind", behind, whole(log.lag_events), "lag");
    }
    this.#dds();
    const version = `Time since the start of fanfare ${status?.version ?? ""}, process ${status?.pid ?? ""}.`;
    this.#set("Up", version, status ? since(status.uptime_s * 1000) : NONE, "uptime");
  }

  #dds(): void {
    const plant = this.#plant;
    for (const [name, title, about] of [
      ["published", "DDS", "Messages written to DDS since the start."],
      ["samples", "DDS", "Samples of decoded messages written to DDS since the start."],
    ] as const) {
      if (plant.value(name) > 0) {
        this.#set(title, about, whole(plant.value(name)), `dds-${name}`);
      }
    }
  }

  #showCharts(): void {
    const { series, counters, stages } = this.#plant;
    const rates: Drawn[] = [];
    if (counters.has("received")) {
      rates.push({ label: "from producers", name: "received", style: 1 });
    }
    if (this.#plant.feeds.length > 0) {
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
