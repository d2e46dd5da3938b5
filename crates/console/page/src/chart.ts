// Charts over time, by uPlot: colours of the page, a legend that has the values as text.

import uPlot from "uplot";
import { attribute, h, text } from "./dom";
import { timeOfDay } from "./format";
import type { Series } from "./series";

export interface Drawn {
  /** In the legend. */
  label: string;
  /** The name in the series. */
  name: string;
  /** Which of the page's colours and dashes: 1 to 4. */
  style: number;
}

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const HEIGHT = 170;
/** The time axis is at least so long, in seconds: a young chart fills from the right. */
const SHORTEST = 60;

/** A chart in a frame with a heading and a sentence; `update` draws what has come. */
export class Chart {
  readonly element: HTMLElement;
  readonly #frame = h("div", { class: "plot", role: "img" });
  readonly #legend = h("ul", { class: "legend" });
  readonly #title: string;
  readonly #format: (value: number | null) => string;
  readonly #least: number;
  #drawn: Drawn[] = [];
  #values: Element[] = [];
  #plot: uPlot | null = null;
  #key = "";
  #observer: ResizeObserver;

  /** The value axis ends at `least` or above: below it, `format` would not tell its ticks apart. */
  constructor(
    title: string,
    about: string,
    format: (value: number | null) => string,
    least: number,
  ) {
    this.#title = title;
    this.#format = format;
    this.#least = least;
    this.element = h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("h3", {}, title), h("p", {}, `${about} Times are UTC.`)),
      this.#frame,
      this.#legend,
    );
    this.#observer = new ResizeObserver(() => {
      const width = this.#frame.clientWidth;
      if (width > 0 && this.#plot && this.#plot.width !== width) {
        this.#plot.setSize({ width, height: HEIGHT });
      }
    });
    this.#observer.observe(this.#frame);
  }

  /** Ends it. */
  end(): void {
    this.#observer.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  update(series: Series, drawn: Drawn[]): void {
    const key = `${this.#colour("--ink")} ${drawn.map((one) => one.name).join("|")}`;
    const width = this.#frame.clientWidth;
    const data = [series.times, ...drawn.map((one) => series.of(one.name))] as uPlot.AlignedData;
    if (key !== this.#key && width > 0) {
      this.#key = key;
      this.#drawn = drawn;
      this.#plot?.destroy();
      this.#plot = new uPlot(this.#options(width), data, this.#frame);
      this.#makeLegend();
    } else {
      this.#plot?.setData(data);
    }
    this.#frame.dataset["points"] = String(series.times.length);
    this.#say();
  }

  /** A colour of the page as a canvas takes it: resolved for light or dark. */
  #colour(name: string): string {
    this.#frame.style.color = `var(${name})`;
    const resolved = getComputedStyle(this.#frame).color;
    this.#frame.style.color = "";
    return resolved;
  }

  #options(width: number): uPlot.Options {
    const colour = (name: string) => this.#colour(name);
    const font = `12px ${getComputedStyle(this.#frame).fontFamily}`;
    const axis = {
      stroke: colour("--soft"),
      font,
      grid: { stroke: colour("--rule"), width: 1 },
      ticks: { stroke: colour("--rule"), width: 1, size: 4 },
    };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { range: (_, min, max) => [Math.min(min, max - SHORTEST), max] },
        y: { range: (_, min, max) => [Math.min(min ?? 0, 0), Math.max(max ?? 0, this.#least) * 1.08] },
      },
      axes: [
        {
          ...axis,
          size: 32,
          space: 74,
          values: (_, times) => times.map((at) => timeOfDay(at * 1000)),
        },
        { ...axis, size: 66, space: 34, values: (_, ticks) => ticks.map((v) => this.#format(v)) },
      ],
      series: [
        {},
        ...this.#drawn.map((one) => ({
          label: one.label,
          stroke: colour(`--line${one.style}`),
          width: 1.75,
          dash: DASHES[one.style - 1] ?? [],
          points: { show: false },
        })),
      ],
      hooks: { setCursor: [() => this.#say()] },
    };
  }

  #makeLegend(): void {
    this.#values = [];
    const items = this.#drawn.map((one) => {
      const value = h("b", {});
      this.#values.push(value);
      return h("li", {}, h("i", { class: `key line${one.style}` }), `${one.label} `, value);
    });
    this.#legend.replaceChildren(...items);
  }

  /** The values under the cursor, or the newest. */
  #say(): void {
    const plot = this.#plot;
    if (!plot) {
      return;
    }
    const at = plot.cursor.idx ?? plot.data[0].length - 1;
    const said = this.#drawn.map((one, index) => {
      const value = this.#format(plot.data[index + 1]?.[at] ?? null);
      const element = this.#values[index];
      if (element) {
        text(element, value);
      }
      return `${one.label} ${value}`;
    });
    attribute(this.#frame, "aria-label", `${this.#title}: ${said.join(", ")}`);
  }
}
