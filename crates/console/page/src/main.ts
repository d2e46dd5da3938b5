// The page: a bar on top, one view beneath, and what is said while the gateway does not answer.

import { needsToken, token } from "./api";
import { fill, h, shape, text } from "./dom";
import { since, timeOfDay } from "./format";
import { instruments } from "./instruments";
import { judge } from "./judge";
import { lines } from "./lines";
import { notices } from "./notices";
import { overview } from "./overview";
import { Plant, type Connection } from "./plant";
import { sessions } from "./sessions";
import { stages } from "./stages";
import type { MakeView, View } from "./view";
import "uplot/dist/uPlot.min.css";
import "./page.css";

const VIEWS: [path: string, name: string, make: MakeView][] = [
  ["overview", "Overview", overview],
  ["lines", "Lines", lines],
  ["sessions", "Sessions", sessions],
  ["instruments", "Instruments", instruments],
  ["stages", "Stages", stages],
  ["notices", "Notices", notices],
];

const THEMES = ["auto", "light", "dark"] as const;

/**
 * Takes a token from behind the address's #, as `fanfare demo --live` prints it, and hides it.
 * Returns whether there was one.
 */
function takeToken(): boolean {
  const [, given] = location.hash.match(/^#token=(.+)$/) ?? [];
  if (given === undefined) {
    return false;
  }
  if (token.fits(given)) {
    token.set(given);
  }
  history.replaceState(null, "", "#/overview");
  return true;
}

/** The view in the address, and its query. */
function address(): [path: string, query: URLSearchParams] {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return [path, new URLSearchParams(query)];
}

class Page {
  readonly #plant = new Plant();
  readonly #content = document.getElementById("content") as HTMLElement;
  readonly #bar = h("div", { class: "bar-note", role: "status" });
  readonly #heard = h("p", { class: "link" });
  readonly #links = new Map<string, HTMLAnchorElement>();
  readonly #body = h("div", { class: "view" });
  #path = "";
  #view: View | null = null;
  /** The refusal for which the token is asked for. */
  #lockedBy: Connection | null = null;

  constructor() {
    const links = VIEWS.map(([path, name]) => {
      const link = h("a", { href: `#/${path}` }, name);
      this.#links.set(path, link);
      return h("li", {}, link);
    });
    document
      .getElementById("top")
      ?.append(
        h(
          "div",
          { class: "top" },
          h("a", { class: "name", href: "#/overview" }, "Fanfare"),
          h("nav", { "aria-label": "Views" }, h("ul", {}, ...links)),
          h("div", { class: "right" }, this.#heard, themes(), needsToken && signOut()),
        ),
        this.#bar,
      );
    this.#content.append(this.#body);
    addEventListener("hashchange", () => this.#go());
    addEventListener("fanfare-theme", () => this.#view?.update());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.#view?.update(),
    );
    addEventListener("keydown", (event) => this.#key(event));
    this.#plant.listen(() => this.#update());
    this.#go();
    setInterval(() => this.#showHeard(), 1000);
    void this.#plant.run();
  }

  /** A slash finds, as it does elsewhere. */
  #key(event: KeyboardEvent): void {
    const isTyping =
      event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    const search = document.getElementById("search");
    if (
      event.key === "/" &&
      !isTyping &&
      search &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.altKey
    ) {
      event.preventDefault();
      search.focus();
    }
  }

  /** Shows the view of the address. */
  #go(): void {
    if (takeToken()) {
      this.#plant.begin();
    }
    const [path, asked] = address();
    const found = VIEWS.find(([name]) => name === path) ?? VIEWS[0]!;
    if (found[0] === this.#path && this.#view?.moved) {
      this.#view.moved(asked);
      this.#view.update();
      return;
    }
    if (found[0] === this.#path && this.#view) {
      return;
    }
    const isFirst = this.#path === "";
    [this.#path] = found;
    document.title = `${found[1]} · Fanfare`;
    for (const [name, link] of this.#links) {
      link.toggleAttribute("aria-current", name === this.#path);
      if (name === this.#path) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    }
    this.#view?.end();
    this.#view = null;
    this.#open(found[2], asked);
    if (!isFirst) {
      scrollTo(0, 0);
      this.#content.focus({ preventScroll: true });
    }
  }

  #open(make: MakeView, query: URLSearchParams): void {
    if (this.#plant.connection.is === "locked") {
      return;
    }
    if (this.#plant.status === null) {
      this.#body.replaceChildren(h("p", { class: "empty" }, "Connecting to the gateway …"));
      return;
    }
    this.#view = make(this.#plant, query);
    this.#body.replaceChildren(this.#view.element);
    this.#view.update();
  }

  #update(): void {
    const { connection } = this.#plant;
    if (connection.is === "locked") {
      // Only a new refusal makes the form anew: what is typed into it stays.
      if (this.#lockedBy !== connection) {
        this.#lockedBy = connection;
        this.#lock(connection.wrong);
      }
    } else {
      this.#lockedBy = null;
      if (this.#view === null) {
        const [, , make] = VIEWS.find(([name]) => name === this.#path) ?? VIEWS[0]!;
        // A view may have changed the address.
        const [, query] = address();
        this.#open(make, query);
      } else {
        this.#view.update();
      }
    }
    this.#showBar();
    this.#showHeard();
    this.#showMark();
  }

  /** Asks for the token. */
  #lock(wrong: boolean): void {
    this.#view?.end();
    this.#view = null;
    const input = h("input", {
      id: "token",
      type: "password",
      autocomplete: "off",
      required: true,
      "aria-describedby": "token-about",
    });
    const refusal = h("p", { class: "wrong", role: "alert" });
    const refuse = (why: string) => refusal.replaceChildren(shape("act"), ` ${why}`);
    const signIn = (event: Event) => {
      event.preventDefault();
      const given = input.value.trim();
      if (!token.fits(given)) {
        refuse("A token has 16 to 256 printable ASCII characters without spaces.");
        return;
      }
      token.set(given);
      this.#plant.begin();
    };
    this.#body.replaceChildren(
      h(
        "form",
        { class: "lock", onsubmit: signIn },
        h("h1", {}, "Token required"),
        h(
          "p",
          { id: "token-about" },
          "Every request to this gateway needs its token: the line in the file that token_file in [console] names. The page keeps the token until the tab is closed.",
        ),
        h(
          "p",
          {},
          h("label", { for: "token" }, "Token "),
          input,
          h("button", { type: "submit", class: "main" }, "Sign in"),
        ),
        refusal,
      ),
    );
    if (wrong) {
      refuse("The gateway refuses this token.");
    }
    input.focus();
  }

  #showBar(): void {
    const { connection, restarts } = this.#plant;
    const key =
      connection.is === "gone" ? `gone ${connection.why}` : restarts > 0 ? `again ${restarts}` : "";
    document.body.classList.toggle("gone", connection.is === "gone");
    fill(this.#bar, key, () => {
      if (connection.is === "gone") {
        const at = timeOfDay(connection.since);
        return [
          shape("act"),
          ` The gateway does not answer: the first failed request was at ${at} UTC. The page shows the last values, and retries. `,
          "If this continues, check that the process runs and that its host can be reached.",
        ];
      }
      if (restarts > 0) {
        const at = timeOfDay(this.#plant.opened);
        return [
          shape("watch"),
          ` The gateway has restarted; the page reached it at ${at} UTC. All counters start at 0.`,
        ];
      }
      return [];
    });
  }

  #showHeard(): void {
    const { connection, heard } = this.#plant;
    const words: Record<string, string> = {
      beginning: "connecting",
      locked: "no token",
      gone: heard > 0 ? `no answer for ${since(Date.now() - heard)}` : "no answer",
      well: Date.now() - heard > 3000 ? `last answer ${since(Date.now() - heard)} ago` : "live",
    };
    const mark = { beginning: "note", locked: "note", gone: "act", well: "good" } as const;
    const said = words[connection.is] ?? "";
    fill(this.#heard, `${connection.is} ${said}`, () => [
      shape(mark[connection.is]),
      h("span", {}, said),
    ]);
  }

  /** How many things are to do, beside the view that has them. */
  #showMark(): void {
    const link = this.#links.get("notices");
    const count =
      this.#plant.connection.is === "well"
        ? judge(this.#plant).filter((one) => one.severity === "act").length
        : 0;
    if (link) {
      fill(link, String(count), () => [
        "Notices",
        count > 0 &&
          h("span", { class: "badge" }, String(count), h("span", { class: "hidden" }, " to act on")),
      ]);
    }
    const [, name] = VIEWS.find(([path]) => path === this.#path) ?? VIEWS[0]!;
    const front = this.#plant.connection.is === "gone" ? "no answer: " : count > 0 ? `(${count}) ` : "";
    const title = `${front}${name} · Fanfare`;
    if (document.title !== title) {
      document.title = title;
    }
  }
}

/** Light, dark, or as the system says. */
function themes(): HTMLElement {
  const button = h("button", { type: "button", class: "quiet" });
  const set = (theme: string) => {
    document.documentElement.dataset["theme"] = theme;
    text(button, theme === "auto" ? "Auto" : theme === "dark" ? "Dark" : "Light");
    button.setAttribute("aria-label", `Colours: ${theme}; change`);
    button.title = "Colours: auto (as the system), light or dark";
  };
  let at = Math.max(
    0,
    THEMES.findIndex((theme) => theme === sessionStorage.getItem("fanfare.theme")),
  );
  set(THEMES[at]!);
  button.addEventListener("click", () => {
    at = (at + 1) % THEMES.length;
    const theme = THEMES[at]!;
    sessionStorage.setItem("fanfare.theme", theme);
    set(theme);
    dispatchEvent(new Event("fanfare-theme"));
  });
  return button;
}

/** Forgets the token. */
function signOut(): HTMLElement {
  const out = () => {
    token.forget();
    location.reload();
  };
  return h(
    "button",
    { type: "button", class: "quiet", title: "Forgets the token", onclick: out },
    "Sign out",
  );
}

new Page();
