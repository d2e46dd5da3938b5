// Numbers and times as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const THIN = "\u202f";

/** What is not known. */
export const NONE = "\u2013";
/** What is asked for. */
export const WAITING = "Waiting for the answer of the gateway …";

/** A whole number with thousands apart. */
export function whole(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : WHOLE.format(value).replaceAll(",", THIN);
}

/** Three digits that count: 0.12, 1.23, 12.3, 123, 1 234. */
function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) {
    return whole(value);
  }
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** So many a second. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return NONE;
  }
  return value >= 100 || value === 0 ? whole(value) : value.toFixed(1);
}

const BYTES = ["B", "kB", "MB", "GB", "TB"];

/** Bytes in units of 1000. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) {
    return NONE;
  }
  let unit = 0;
  let size = value;
  while (size >= 999.5 && unit < BYTES.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? whole(size) : short(size)}${THIN}${BYTES[unit]}`;
}

/** Nanoseconds as ns, µs, ms or s. */
export function nanos(value: number | null | undefined): string {
  if (value === null || value === undefined) {
    return NONE;
  }
  const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
  ];
  const unit = units.find(([size]) => value >= size * 0.9995);
  return unit ? `${short(value / unit[0])}${THIN}${unit[1]}` : `${whole(value)}${THIN}ns`;
}

/** Milliseconds that have passed, from ms to days. */
export function since(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) {
    return NONE;
  }
  if (ms < 1000) {
    return `${whole(ms)}${THIN}ms`;
  }
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) {
    return `${seconds}${THIN}s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return `${minutes}${THIN}min ${seconds % 60}${THIN}s`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 48) {
    return `${hours}${THIN}h ${minutes % 60}${THIN}min`;
  }
  return `${Math.floor(hours / 24)}${THIN}d ${hours % 24}${THIN}h`;
}

/** A part of a whole, in percent. */
export function percent(part: number, all: number): string {
  if (all === 0) {
    return NONE;
  }
  const value = (100 * part) / all;
  const nearly = (value < 0.1 && part > 0) || (value > 99.9 && part < all);
  return `${nearly ? value.toFixed(3) : value.toFixed(1)}${THIN}%`;
}

/** The time of day, UTC, of an RFC 3339 text: 10:31:05.123. */
export function clock(time: string | null | undefined): string {
  const found = time?.match(/T(\d\d:\d\d:\d\d)(\.\d{1,3})?/);
  return found ? `${found[1]}${(found[2] ?? ".").padEnd(4, "0")}` : NONE;
}

/** The time of day in UTC, to the second, of milliseconds since 1970. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19);
}

/** The present day in UTC: 2026-11-23. */
export function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** The time, UTC, of an RFC 3339 text, behind its day unless that is the present one. */
export function when(time: string | null | undefined): string {
  const day = time?.slice(0, 10) ?? "";
  const now = today();
  if (!time || day === now) {
    return clock(time);
  }
  const isThisYear = day.slice(0, 4) === now.slice(0, 4);
  return `${isThisYear ? day.slice(5) : day} ${clock(time)}`;
}

/** Day and time, UTC, of an RFC 3339 text. */
export function moment(time: string | null | undefined): string {
  return time ? `${time.slice(0, 10)} ${clock(time)}` : NONE;
}

/** "1 session", "2 sessions". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
