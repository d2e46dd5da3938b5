// Where the time goes between arrival and socket.

import type { Span, Stage } from "./api";
import { Chart } from "./chart";
import { fill, h, text } from "./dom";
import { nanos, NONE, whole } from "./format";
import type { Plant } from "./plant";
import { nothing, section, type View } from "./view";

const SPANS: [Span, string][] = [
  ["10s", "last 10 seconds"],
  ["1m", "last minute"],
  ["all", "since the start"],
];

export function stages(plant: Plant): View {
  return new Stages(plant);
}

class Stages implements View {
  readonly element: HTMLElement;
  readonly #plant: Plant;
  readonly #body = h("div", {});
  readonly #table = h("tbody", {});
  readonly #scale = h("th", { scope: "col", class: "range" }, "");
  readonly #spans = h("div", {
    class: "choice",
    role: "radiogroup",
    "aria-label": "Period",
  });
  readonly #median = new Chart(
    "Median of each stage",
    "Half of the messages take less, over the last ten seconds.",
    nanos,
    1_000,
  );
  readonly #tail = new Chart(
    "99th percentile of each stage",
    "99 of 100 messages take less, over the last ten seconds.",
    nanos,
    1_000,
  );
  #agent = h("select", { id: "agent" });
  #span: Span = "10s";

  constructor(plant: Plant) {
    this.#plant = plant;
    for (const [span, words] of SPANS) {
      const input = h("input", {
        type: "radio",
        name: "span",
        value: span,
        checked: span === this.#span,
        onchange: () => {
          this.#span = span;
          this.update();
        },
      });
      this.#spans.append(h("label", {}, input, words));
    }
    this.#agent.addEventListener("change", () => this.update());
    this.element = h("div", {}, h("h1", {}, "Stages"), this.#body);
  }

  end(): void {
    this.#median.end();
    this.#tail.end();
  }

  update(): void {
    const { stages } = this.#plant;
    const missing = this.#plant.missing("stages");
    fill(this.#body, stages.length > 0 ? "stages" : `none ${missing}`, () =>
      stages.length > 0
        ? [this.#parts()]
        : [
            nothing(
              missing,
              "This gateway does not measure its stages.",
              "stages = true in its configuration enables this at the next start.",
            ),
          ],
    );
    if (stages.length === 0) {
      return;
    }
    this.#show(stages);
    const agents = [...new Set(stages.map((stage) => stage.of))];
    const first = busiest(stages)?.of;
    fill(this.#agent, agents.join("|"), () =>
      agents.map((of) => h("option", { value: of, selected: of === first }, of)),
    );
    const own = stages.filter((stage) => stage.of === this.#agent.value).slice(0, 4);
    const drawn = (what: string) =>
      own.map((stage, index) => ({
        label: stage.stage,
        name: `${stage.of} ${stage.stage} ${what}`,
        style: index + 1,
      }));
    this.#median.update(this.#plant.series, drawn("p50"));
    this.#tail.update(this.#plant.series, drawn("p99"));
  }

  #parts(): HTMLElement {
    const head = ["Measured", "p50", "p99", "p99.9", "Max"].map((name) =>
      h("th", { scope: "col" }, name),
    );
    return section(
      "From arrival to socket",
      "A message passes these stages in turn; the first message of each turn of a source is measured. p99 is the time that 99 of 100 messages do not exceed. A stage that grows while the others stay the same causes the delay.",
      this.#spans,
      h(
        "div",
        { class: "wide", tabindex: 0, role: "region", "aria-label": "Stages" },
        h(
          "table",
          { class: "stages" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Stage"), ...head, this.#scale)),
          this.#table,
        ),
      ),
      h("p", { class: "pick" }, h("label", { for: "agent" }, "Charts of "), this.#agent),
      h("div", { class: "charts" }, this.#median.element, this.#tail.element),
    );
  }

  #show(stages: Stage[]): void {
    const windows = stages.map((stage) => stage.windows[this.#span]);
    const some = windows.filter((window) => window.count > 0);
    const least = some.map((window) => window.p50_ns).filter((ns) => ns > 0);
    const low = Math.max(1, Math.min(...least, 1e9) / 2);
    const high = Math.max(low * 10, ...some.map((window) => window.max_ns));
    const at = (ns: number) => (Math.log(Math.max(ns, low) / low) / Math.log(high / low)) * 100;
    text(
      this.#scale,
      some.length > 0 ? `${nanos(Math.round(low))} to ${nanos(high)}, logarithmic` : "",
    );
    fill(this.#table, this.#span + JSON.stringify(windows), () =>
      stages.map((stage) => {
        const window = stage.windows[this.#span];
        const values = [window.p50_ns, window.p99_ns, window.p99_9_ns, window.max_ns];
        return h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            h("b", {}, `${stage.of} ${stage.stage}`),
            h("small", {}, stage.help),
          ),
          h("td", {}, whole(window.count)),
          ...values.map((value) => h("td", {}, window.count > 0 ? nanos(value) : NONE)),
          h(
            "td",
            { class: "range" },
            window.count > 0 ? range(at, window.p50_ns, window.p99_ns, window.max_ns) : null,
          ),
        );
      }),
    );
  }
}

/** Stages in the order in which a message passes them, those of an agent together. */
const ORDER = ["arrival", "decode", "fix", "event", "ring", "socket", "dds", "log", "total"];
const SOURCES = 4;

/** Sources in front of outlets, and the stages of each in their order. */
export function inOrder(stages: Stage[]): Stage[] {
  const agents = [...new Set(stages.map((stage) => stage.of))];
  const place = (stage: Stage) => {
    const at = ORDER.indexOf(stage.stage);
    const isOutlet = at < 0 || at >= SOURCES ? 1 : 0;
    return [isOutlet, agents.indexOf(stage.of), at] as const;
  };
  return stages.toSorted((a, b) => {
    const [left, right] = [place(a), place(b)];
    return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
  });
}

/** From arrival to the end of the outlet that has measured most; of one to sockets, if any has. */
export function busiest(stages: Stage[]): Stage | undefined {
  const toSockets = stages.filter((one) => one.stage === "socket").map((one) => one.of);
  const total = stages.filter((stage) => stage.stage === "total");
  const most = total.toSorted((a, b) => b.windows.all.count - a.windows.all.count);
  const busy = most.filter((stage) => stage.windows.all.count > 0);
  return busy.find((stage) => toSockets.includes(stage.of)) ?? most[0];
}

/** From the median, over the 99th percentile, to the most. */
function range(at: (ns: number) => number, p50: number, p99: number, most: number): HTMLElement {
  const place = (name: string, from: number, to: number) => {
    const part = h("i", { class: name });
    part.style.left = `${at(from)}%`;
    part.style.width = `${Math.max(at(to) - at(from), 0.6)}%`;
    return part;
  };
  return h(
    "span",
    { class: "bar", "aria-hidden": "true" },
    place("tail", p99, most),
    place("body", p50, p99),
  );
}
