// What the gateway told, and what is not well.

import type { Notice } from "./api";
import { attribute, fill, h, shape, text } from "./dom";
import { clock, counted, whole } from "./format";
import { showFindings } from "./findings";
import { judge } from "./judge";
import type { Plant } from "./plant";
import { Rows, type Row } from "./rows";
import { empty, nothing, section, type View } from "./view";

export function notices(plant: Plant): View {
  return new Notices(plant);
}

class Notices implements View {
  readonly element: HTMLElement;
  readonly #plant: Plant;
  readonly #alerts = h("ul", { class: "findings" });
  readonly #calm = h("div", {});
  readonly #none = h("div", {});
  readonly #trouble = h("input", { type: "checkbox", id: "trouble" });
  readonly #search = h("input", {
    type: "search",
    id: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "word in a notice",
  });
  readonly #count = h("p", { class: "count", role: "status" });
  readonly #rows: Rows<Notice>;
  #shown = "";
  #all: Notice[] | null = null;

  constructor(plant: Plant) {
    this.#plant = plant;
    const head = h(
      "div",
      { class: "row notice", role: "row" },
      ...["Time, UTC", "Kind", "Notice"].map((name) =>
        h("span", { class: "cell", role: "columnheader" }, name),
      ),
    );
    this.#rows = new Rows("Notices", head, () => new NoticeRow());
    for (const input of [this.#trouble, this.#search]) {
      input.addEventListener("input", () => this.update());
    }
    this.element = h(
      "div",
      {},
      h("h1", {}, "Alerts and notices"),
      section(
        "Alerts",
        "Present problems, their effect, and what to do.",
        this.#alerts,
        this.#calm,
      ),
      section(
        "Notices",
        "The last thousand notices of the gateway, the newest first.",
        h(
          "div",
          { class: "tools", role: "search" },
          h("label", { for: "search" }, "Find "),
          this.#search,
          h("label", {}, this.#trouble, " problems only"),
          this.#count,
        ),
        this.#rows.element,
        this.#none,
      ),
    );
  }

  end(): void {
    this.#rows.end();
  }

  update(): void {
    const found = judge(this.#plant);
    showFindings(this.#alerts, found);
    fill(this.#calm, String(found.length === 0), () =>
      found.length === 0 ? [empty("All is well: there is no alert.")] : [],
    );
    const word = this.#search.value.trim().toLowerCase();
    const all = this.#plant.notices;
    const missing = this.#plant.missing("notices");
    const key = `${word} ${this.#trouble.checked} ${missing}`;
    if (key === this.#shown && all === this.#all) {
      return;
    }
    this.#shown = key;
    this.#all = all;
    const fits = (one: Notice) =>
      (one.trouble || !this.#trouble.checked) &&
      `${one.kind} ${one.text}`.toLowerCase().includes(word);
    const some = all.filter(fits);
    this.#rows.set(some);
    text(
      this.#count,
      some.length === all.length
        ? counted(all.length, "notice")
        : `${whole(some.length)} of ${counted(all.length, "notice")}`,
    );
    this.#rows.element.hidden = some.length === 0;
    fill(this.#none, `${some.length === 0} ${all.length === 0} ${missing}`, () => {
      if (some.length > 0) {
        return [];
      }
      const none = () => nothing(missing, "There are no notices yet.");
      return [all.length === 0 ? none() : empty("No notice matches.")];
    });
  }
}

class NoticeRow implements Row<Notice> {
  readonly element: HTMLElement;
  readonly #time = h("time", { class: "cell", role: "cell" });
  readonly #kind = h("span", { class: "cell kind", role: "cell" });
  readonly #text = h("span", { class: "cell said", role: "cell" });

  constructor() {
    this.element = h(
      "div",
      { class: "row notice", role: "row" },
      this.#time,
      this.#kind,
      this.#text,
    );
  }

  show(notice: Notice): void {
    text(this.#time, clock(notice.time));
    attribute(this.#time, "datetime", notice.time);
    fill(this.#kind, `${notice.trouble} ${notice.kind}`, () => [
      notice.trouble ? shape("watch") : null,
      h("span", {}, notice.kind.replaceAll("_", " ")),
    ]);
    text(this.#text, notice.text);
    attribute(this.#text, "title", notice.text);
  }
}
