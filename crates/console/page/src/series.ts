// What the page has seen so far, second by second: the gateway keeps no history of its figures.

/** How many points are kept: a quarter of an hour. */
const MOST = 900;

/** Named values over time, all on one axis. A value that was not there at a time is null. */
export class Series {
  /** Seconds since 1970. */
  readonly times: number[] = [];
  readonly #values = new Map<string, (number | null)[]>();

  /** Adds the values of a moment. */
  push(time: number, values: Map<string, number | null>): void {
    this.times.push(time);
    for (const name of values.keys()) {
      if (!this.#values.has(name)) {
        this.#values.set(name, new Array<null>(this.times.length - 1).fill(null));
      }
    }
    for (const [name, line] of this.#values) {
      line.push(values.get(name) ?? null);
    }
    if (this.times.length > MOST) {
      this.times.shift();
      for (const [name, line] of this.#values) {
        line.shift();
        if (line.every((value) => value === null)) {
          this.#values.delete(name);
        }
      }
    }
  }

  /** The values of a name, one for each time. */
  of(name: string): (number | null)[] {
    return this.#values.get(name) ?? new Array<null>(this.times.length).fill(null);
  }
}
