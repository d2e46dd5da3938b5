// Questions and details in front of the page.

import { h, type Child } from "./dom";

/** Shows a dialog until it is closed. */
export function show(title: string, ...children: Child[]): HTMLDialogElement {
  const heading = h("h2", { id: "dialog-title" }, title);
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, heading, ...children);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export interface Question {
  title: string;
  /** What will happen. */
  about: string;
  /** On the button that does it. */
  yes: string;
  /** A field that goes along, by its label. */
  field?: { label: string; value: string; most: number };
  /** Does it; what it returns is the outcome, for the reader. */
  act: (field: string) => Promise<string>;
}

/** Asks whether something shall be done, does it, and says what came of it. */
export function ask(question: Question): void {
  const said = h("p", { class: "said", role: "status" });
  const yes = h("button", { class: "danger", type: "submit" }, question.yes);
  const no = h(
    "button",
    { type: "button", autofocus: true, onclick: () => dialog.close() },
    "Cancel",
  );
  const field = question.field;
  const input = field
    ? h("input", { type: "text", id: "dialog-field", value: field.value, maxlength: field.most })
    : null;
  const act = async (event: Event) => {
    event.preventDefault();
    yes.disabled = true;
    no.disabled = true;
    said.textContent = "In progress …";
    try {
      said.textContent = await question.act(input?.value ?? "");
      yes.hidden = true;
      no.textContent = "Close";
    } catch (error) {
      said.textContent = `Failed: ${error instanceof Error ? error.message : String(error)}.`;
      yes.disabled = false;
    }
    no.disabled = false;
    // A browser lets no page withhold Escape for ever; the outcome is shown all the same.
    if (!dialog.open) {
      document.body.append(dialog);
      dialog.showModal();
    }
    no.focus();
  };
  const form = h(
    "form",
    { onsubmit: (event) => void act(event) },
    h("p", {}, question.about),
    input && field && h("p", {}, h("label", { for: "dialog-field" }, field.label), input),
    said,
    h("p", { class: "buttons" }, no, yes),
  );
  const dialog = show(question.title, form);
  // Until the outcome is known it stays.
  dialog.addEventListener("cancel", (event) => no.disabled && event.preventDefault());
}
