// What the gateway told, and what is not well.

import type { Notice } from "./api";
import { show } from "./dialog";
import { attribute, fill, h, shape, text } from "./dom";
import { counted, moment, today, when, whole } from "./format";
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
    const isCalm = found.length === 0 && this.#plant.connection.is === "well";
    fill(this.#calm, String(isCalm), () =>
      isCalm ? [empty("All is well: there is no alert.")] : [],
    );
    const word = this.#search.value.trim().toLowerCase();
    const all = this.#plant.notices;
    const missing = this.#plant.missing("notices");
    const { leftOut } = this.#plant;
    const key = `${word} ${this.#trouble.checked} ${missing} ${leftOut} ${today()}`;
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
    const part = some.length === all.length ? "" : `${whole(some.length)} of `;
    const left = leftOut > 0 ? `, ${whole(leftOut)} left out` : "";
    text(this.#count, part + counted(all.length, "notice") + left);
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

const kindOf = (notice: Notice) => notice.kind.replaceAll("_", " ");

/** The whole text of a notice, of which a row may have room for the beginning alone. */
function details(notice: Notice): void {
  const close = () => dialog.close();
  const dialog: HTMLDialogElement = show(
    `Notice: ${kindOf(notice)}`,
    h("p", { class: "about" }, `${moment(notice.time)} UTC`),
    h("p", { class: "whole" }, notice.text),
    h(
      "p",
      { class: "buttons" },
      h("button", { type: "button", autofocus: true, onclick: close }, "Close"),
    ),
  );
}

class NoticeRow implements Row<Notice> {
  readonly element: HTMLElement;
  readonly #time = h("time", { class: "cell", role: "cell" });
  readonly #kind = h("span", { class: "cell kind", role: "cell" });
  readonly #text = h("button", { type: "button" });
  #notice: Notice | null = null;

  constructor() {
    this.#text.addEventListener("click", () => this.#notice && details(this.#notice));
    this.element = h(
      "div",
      { class: "row notice", role: "row" },
      this.#time,
      this.#kind,
      h("span", { class: "cell said", role: "cell" }, this.#text),
    );
  }

  show(notice: Notice): void {
    this.#notice = notice;
    text(this.#time, when(notice.time));
    attribute(this.#time, "datetime", notice.time);
    fill(this.#kind, `${notice.trouble} ${notice.kind}`, () => [
      notice.trouble ? shape("watch") : null,
      h("span", {}, kindOf(notice)),
    ]);
    text(this.#text, notice.text);
    attribute(this.#text, "title", notice.text);
  }
}
