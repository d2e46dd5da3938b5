// The data API (docs/console.md), as the page uses it.

export interface Port {
  name: string;
  address: string;
  tls: boolean;
  sessions: number;
  most: number;
  open: boolean;
}

export interface FeedState {
  channel: string;
  live: number;
  recovering: number;
  stale: number;
  closed: number;
  /** Known instruments, as from a file, whose books the feed has not mentioned. */
  unheard: number;
  /** The sum of all states. */
  instruments: number;
}

export interface Status {
  version: string;
  pid: number;
  uptime_s: number;
  /** The number of the run: another process has another one. */
  run: number | string;
  users: number;
  ports: Port[];
  time: string;
  feeds: FeedState[];
  events: { next: number; per_s: number | null } | null;
  history: boolean;
}

export interface Line {
  line: string;
  use: "changes" | "snapshots";
  group: string;
  interface: string;
  source: string | null;
  packets: number;
  bytes: number;
  first: number;
  duplicate: number;
  late: number;
  refused: number;
  lost: number;
  behind: { count: number; mean_ns: number | null; max_ns: number };
  silence_ms: number | null;
  packets_per_s: number | null;
  bytes_per_s: number | null;
}

export interface Feed extends FeedState {
  kind: "lines" | "edge" | "file" | "session" | "replay";
  gaps: number;
  restarts: number;
  kernel_drops: number;
  /** Market events. */
  events: number;
  /** Decoded messages; null where no packets are decoded. */
  messages: number | null;
  undecodable: number;
  /** Whether deviations from FAST are accepted; null where no packets are decoded. */
  lenient: boolean | null;
  silence_ms: number | null;
  recoveries: number;
  recovered: number;
  replay_requests: number;
  lines: Line[];
  /** Of a feed that is a FIX session. */
  session?: { logged_on: boolean; refused: number };
}

export interface Session {
  port: string;
  session: string;
  version: string;
  sender: string;
  /** None of a client of DBN, as all that is null below. */
  target: string | null;
  user: string;
  peer: string;
  since: string;
  logged_on: boolean;
  next_sender: number | null;
  next_target: number | null;
  queued_bytes: number;
  last_heard_ms: number | null;
  round_trip_us: number | null;
  lag_ms: number | null;
  conflated: number;
  skipped: number;
  subscriptions: number | null;
  /** Of a client of DBN alone. */
  schemas?: string[];
  instruments?: number;
}

export type Lacks =
  | null
  | { what: "snapshot"; after_fault: boolean }
  | { what: "changes"; from: number; to: number }
  | { what: "certainty"; below: number }
  | { what: "channel" };

export interface Instrument {
  number: number;
  symbol: string;
  security_id: string;
  feed: string;
  state: string;
  lacks: Lacks;
  rpt_seq: number | null;
  event: number | null;
  updated: string | null;
  trading: number | null;
}

export interface Level {
  price: string;
  size: number;
  orders?: number;
}

export interface Book {
  number: number;
  symbol: string;
  security_id: string;
  feed: string;
  kind: string | null;
  state: string;
  lacks: Lacks;
  rpt_seq: number | null;
  updated: string | null;
  trading: number | null;
  bids: Level[];
  offers: Level[];
  levels: { bids: number; offers: number };
  trades: {
    number: number;
    time: string | null;
    price: string;
    size: number | null;
    id: string | null;
  }[];
  values: {
    type: string;
    name: string | null;
    price: string | null;
    size: number | null;
    time: string | null;
  }[];
}

export interface Books {
  number: number;
  time: string | null;
  live: boolean;
  books: Book[];
}

export interface Window {
  count: number;
  p50_ns: number;
  p99_ns: number;
  p99_9_ns: number;
  max_ns: number;
}

export type Span = "10s" | "1m" | "all";

export interface Stage {
  stage: string;
  of: string;
  help: string;
  windows: Record<Span, Window>;
}

export interface Log {
  folder: string;
  run: number;
  first: number;
  next: number;
  from: string | null;
  to: string | null;
  events: number;
  bytes: number;
  segments: number;
  compacted: number;
  events_per_s: number | null;
  bytes_per_s: number | null;
  lag_events: number;
  missed: number;
  failures: number;
  checkpoints: number;
}

export interface Notice {
  id: number;
  time: string;
  trouble: boolean;
  kind: string;
  text: string;
}

export interface Subscription {
  session: string;
  request: string;
  patterns: string[];
  symbols: string[];
  instruments: number;
  depth: number;
  contract: string;
  interval_ms: number;
  behind: number;
  conflated: number;
  skipped: number;
}

/** What the page calls a session: a client of DBN may have no name for itself. */
export const nameOf = (session: Session) => session.sender || session.session;

/** The status of an answer that took too long. */
export const TOO_LATE = 408;

/** What the gateway answered instead of what was asked for; 0 where nobody answered. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const KEPT = "fanfare.token";

/** The token of this tab, which ends with it. */
export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set: (value: string) => sessionStorage.setItem(KEPT, value),
  forget: () => sessionStorage.removeItem(KEPT),
  /** Whether a gateway can have it; a header cannot carry every other text. */
  fits: (value: string) => /^[!-~]{16,256}$/.test(value),
};

/** Whether the gateway answers only those who bring a token. */
export const needsToken = document.documentElement.dataset["token"] === "needed";

/** Whether there is a token, without which nothing can be done. */
export const maySteer = () => needsToken && token.get() !== null;

/** The longest that an answer is waited for, in ms. */
const PATIENCE = 10_000;
/** The same for a reload and a book of the past: the gateway itself gives up after 90 s. */
export const LONG = 95_000;

/** Why there is no answer, or not all of it. */
function failure(error: unknown, patience: number, otherwise: string): Refused {
  return error instanceof DOMException && error.name === "TimeoutError"
    ? new Refused(TOO_LATE, `the answer took longer than ${patience / 1000} s`)
    : new Refused(0, otherwise);
}

async function request(path: string, init: RequestInit, patience = PATIENCE): Promise<Response> {
  const headers = new Headers(init.headers);
  const own = token.get();
  if (own !== null) {
    headers.set("Authorization", `Bearer ${own}`);
  }
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    throw failure(error, patience, "the gateway does not answer");
  }
  if (!response.ok) {
    const body: unknown = await response.json().catch(() => null);
    const why = (body as { error?: unknown } | null)?.error;
    throw new Refused(response.status, typeof why === "string" ? why : response.statusText);
  }
  return response;
}

async function json<T>(path: string, init: RequestInit, patience = PATIENCE): Promise<T> {
  const signal = AbortSignal.timeout(patience);
  const response = await request(path, { ...init, signal }, patience);
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw failure(error, patience, "the answer of the gateway is incomplete");
  }
}

/** Asks for a path below /api/v1/. What is `undefined` or empty is not asked for. */
export function get<T>(
  what: string,
  query: Record<string, string | number | undefined> = {},
  patience = PATIENCE,
): Promise<T> {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") {
      asked.set(name, String(value));
    }
  }
  const suffix = asked.size > 0 ? `?${asked}` : "";
  return json(`/api/v1/${what}${suffix}`, {}, patience);
}

/** Has something done. */
export function post<T>(what: string, body: object): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  return json(`/api/v1/${what}`, init, LONG);
}

/** What the gateway can be asked for below /api/v1/. */
export async function offers(): Promise<Set<string>> {
  const described = await json<{ paths: Record<string, unknown> }>("/api/v1/openapi.json", {});
  const names = Object.keys(described.paths).map((path) => path.replace("/api/v1/", ""));
  return new Set(names);
}

/** The text of /metrics: names and help texts of all counters. */
export async function metrics(): Promise<string> {
  return (await request("/metrics", { signal: AbortSignal.timeout(PATIENCE) })).text();
}

/** The stream of changes; ends with its connection, or with `signal`. */
export async function changes(
  signal: AbortSignal,
  each: (kind: string, data: unknown) => void,
): Promise<void> {
  const headers = { Accept: "text/event-stream" };
  const response = await request("/api/v1/changes", { headers, signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      one(event, each);
    }
  }
}

function one(event: string, each: (kind: string, data: unknown) => void): void {
  const [, kind] = event.match(/^event: ?(.*)$/m) ?? [];
  const [, data] = event.match(/^data: ?(.*)$/m) ?? [];
  if (kind !== undefined && data !== undefined) {
    each(kind, JSON.parse(data));
  }
}
