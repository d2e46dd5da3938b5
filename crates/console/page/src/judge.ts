// Is all well? Each thing that is not: what has happened, what it costs, and what to do about it.

import type { Plant } from "./plant";
import { nameOf, type Feed } from "./api";
import { counted, nanos, since, whole } from "./format";

/** `act`: something is lost, or about to be. `watch`: it may come to that. `note`: it was before. */
export type Severity = "act" | "watch" | "note";

export interface Finding {
  id: string;
  severity: Severity;
  title: string;
  means: string;
  todo: string;
  /** Where more is to be seen. */
  view: string;
}

interface Rule {
  counters: string[];
  severity: "act" | "watch";
  /** More than so many within five minutes. */
  above?: number;
  /** Behind the count. */
  what: [one: string, many: string];
  means: string;
  todo: string;
  view: string;
}

/** What is left out for consumers that read too slowly. */
export const LEFT_OUT = ["dropped", "skipped", "dbn_skipped"] as const;

const RULES: Rule[] = [
  {
    counters: ["gaps", "edge_unbrought"],
    severity: "act",
    what: [
      "message of a feed was on no line, or no gateway delivered it",
      "messages of a feed were on no line, or no gateway delivered them",
    ],
    means:
      "The books concerned recover from snapshots or a replay, and are not live until then.",
    todo: "Check the network of all lines, and the datagrams that the kernel dropped.",
    view: "lines",
  },
  {
    counters: ["kernel_drops", "snapshot_drops"],
    severity: "act",
    what: ["datagram was dropped by the kernel", "datagrams were dropped by the kernel"],
    means: "The receive buffer was full: the thread of the feeds read it too late.",
    todo: "Raise net.core.rmem_max, pin the thread of the feeds, or give it a processor of its own.",
    view: "lines",
  },
  {
    counters: ["undecodable", "snapshots_bad"],
    severity: "act",
    what: ["packet could not be decoded", "packets could not be decoded"],
    means: "Their content is missing. The exchange may have changed its templates.",
    todo:
      "Compare the template file with that of the exchange, and restart. With a code R1, R2 or R6 " +
      "to R9 in the notices, the key lenient of the feed accepts what the exchange sends.",
    view: "notices",
  },
  {
    counters: ["no_room", "events_lapped"],
    severity: "act",
    what: ["message was left out for all consumers", "messages were left out for all consumers"],
    means: "The workers are behind the feed.",
    todo: "Configure more workers, dedicated threads, or a larger ring_bytes.",
    view: "stages",
  },
  {
    counters: ["log_missed"],
    severity: "act",
    what: ["event is not in the log", "events are not in the log"],
    means: "The log's disk is full, or slower than the feed.",
    todo: "Free space on the disk. The other site's log may have the missing events.",
    view: "notices",
  },
  {
    counters: ["raw_missed"],
    severity: "act",
    what: [
      "datagram or message is not in the raw log",
      "datagrams and messages are not in the raw log",
    ],
    means: "The raw log's disk is full, or slower than the feed.",
    todo: "Free space on the disk. The other site's raw log may have what is missing.",
    view: "notices",
  },
  {
    counters: ["log_failures", "raw_failures"],
    severity: "act",
    what: [
      "write to a log was refused by the system",
      "writes to a log were refused by the system",
    ],
    means:
      "The gateway repeats a refused write ten times a second. Events are lost once the log is " +
      "behind by more than its ring holds.",
    todo: "The notices have the system's reason. Free space on the disk, or repair it.",
    view: "notices",
  },
  {
    counters: ["slow_consumers"],
    severity: "act",
    what: [
      "consumer was disconnected: it read too slowly",
      "consumers were disconnected: they read too slowly",
    ],
    means: "A consumer receives the missed messages after its next Logon, as far as its contract states.",
    todo: "Inform their operators. The notices have their names, and the bytes queued for them.",
    view: "notices",
  },
  {
    counters: [...LEFT_OUT],
    severity: "watch",
    what: ["message was left out for a slow consumer", "messages were left out for slow consumers"],
    means: "The gap is announced to each of these consumers. Other consumers are not affected.",
    todo: "Find the sessions that lag, and inform their operators.",
    view: "sessions",
  },
  {
    counters: ["unsent", "samples_not_sent", "edge_untaken"],
    severity: "watch",
    what: ["sample was left out for a DDS subscriber", "samples were left out for DDS subscribers"],
    means: "The subscriber did not acknowledge in time.",
    todo: "Check the subscriber's host and network.",
    view: "notices",
  },
  {
    counters: ["overrun", "samples_overwritten", "edge_lapped"],
    severity: "watch",
    what: [
      "message was overwritten before it was published to DDS",
      "messages were overwritten before they were published to DDS",
    ],
    means: "The thread that publishes is behind the feed.",
    todo: "Give the thread a processor of its own, or configure a larger ring.",
    view: "stages",
  },
  {
    counters: ["incompatible"],
    severity: "watch",
    what: [
      "remote DataReader or DataWriter has incompatible policies",
      "remote DataReaders or DataWriters have incompatible policies",
    ],
    means: "No sample of the topic passes between it and the gateway.",
    todo: "Compare its QoS with docs/gateway.md.",
    view: "notices",
  },
  {
    counters: ["book_faults"],
    severity: "watch",
    what: ["change was refused by its book", "changes were refused by their books"],
    means: "The books concerned recover, and are not live until then.",
    todo: "If this continues, compare the mapping with the exchange's documents.",
    view: "instruments",
  },
  {
    counters: ["rejects"],
    severity: "watch",
    what: ["message was rejected by a counterparty", "messages were rejected by counterparties"],
    means: "The counterparty's rules differ from those of the FIX version of its session.",
    todo: "The notices have the counterparty's reason.",
    view: "notices",
  },
  {
    counters: ["audit_lost"],
    severity: "watch",
    what: ["line is missing from the audit file", "lines are missing from the audit file"],
    means: "Its disk is full or too slow.",
    todo: "Free space on the disk.",
    view: "notices",
  },
  {
    counters: ["console_refused"],
    severity: "watch",
    above: 20,
    what: [
      "request without the token, or with a wrong one",
      "requests without the token, or with a wrong one",
    ],
    means: "A scraper has an old token, or somebody guesses tokens.",
    todo: "The audit file has the addresses.",
    view: "notices",
  },
];

/** A silent line beside one that is heard, in ms. */
const SILENT = 5000;
/** What waits for a session for so long, in ms, is worth a look. */
const LAGS = 2000;
/** Instruments that recover or are stale for longer, in ms, do not come back by themselves. */
const PATIENCE = 60_000;

const ORDER: Severity[] = ["act", "watch", "note"];

/** What is not well, the gravest first. */
export function judge(plant: Plant): Finding[] {
  const found = [
    ...RULES.flatMap((rule) => byRule(plant, rule)),
    ...lines(plant),
    ...instruments(plant),
    ...sessions(plant),
    ...ports(plant),
    ...refusals(plant),
  ];
  return found.sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}

/** Parts of the state that the gateway cannot tell. */
function refusals(plant: Plant): Finding[] {
  return [...plant.refusals].map(([what, title]) => ({
    id: `refused ${what}`,
    severity: "watch",
    title,
    means: "The page shows the rest.",
    todo:
      what === "log"
        ? "fanfare history verify names what is damaged."
        : "See the log of the program.",
    view: "notices",
  }));
}

function byRule(plant: Plant, rule: Rule): Finding[] {
  const [one, many] = rule.what;
  const about = { means: rule.means, todo: rule.todo, view: rule.view };
  const id = rule.counters.join(" ");
  const grown = plant.grown(...rule.counters);
  if (grown > (rule.above ?? 0)) {
    const title = `${counted(grown, one, many)} within five minutes`;
    return [{ id, severity: rule.severity, title, ...about }];
  }
  const all = rule.counters.reduce((sum, name) => sum + plant.value(name), 0);
  if (all > (rule.above ?? 0) * 10) {
    const title = `${counted(all, one, many)} earlier`;
    return [{ id, severity: "note", title, ...about }];
  }
  return [];
}

function lines(plant: Plant): Finding[] {
  return plant.feeds.flatMap((feed) => ofFeed(plant, feed));
}

/** The lines of a feed that are silent: some beside others that are heard, or all. */
function ofFeed(plant: Plant, feed: Feed): Finding[] {
  const changes = feed.lines.filter((line) => line.use === "changes");
  const silent = changes.filter((line) => line.silence_ms === null || line.silence_ms > SILENT);
  if (silent.length === 0) {
    return [];
  }
  const id = `silent ${feed.channel}`;
  const silences = silent.map((line) => line.silence_ms).filter((ms) => ms !== null);
  if (silent.length < changes.length) {
    const names = silent.map((line) => line.line).join(", ");
    const [lines, has, is] = silent.length === 1 ? ["Line", "has", "is"] : ["Lines", "have", "are"];
    const longest = since(Math.max(...silences));
    const how = silences.length > 0 ? `${has} been silent for ${longest}` : `${is} silent`;
    const isLast = changes.length - silent.length === 1;
    return [
      {
        id,
        severity: "act",
        title: `${lines} ${names} of ${feed.channel} ${how}`,
        means: isLast
          ? "The feed continues on the other line alone; a packet lost there is lost."
          : "The feed continues on the other lines.",
        todo: "Check the line's network, its group, and the exchange's notices.",
        view: "lines",
      },
    ];
  }
  const uptime = (plant.status?.uptime_s ?? 0) * 1000;
  if (silences.length === 0 && uptime < PATIENCE) {
    return [];
  }
  const [all, have] =
    changes.length === 1
      ? [`The line with changes of ${feed.channel}`, "has"]
      : [`All lines with changes of ${feed.channel}`, "have"];
  return [
    {
      id,
      severity: "watch",
      title:
        silences.length > 0
          ? `${all} ${have} been silent for ${since(Math.min(...silences))}`
          : `${all} ${have} received no packet since the start`,
      means: "Outside of trading hours this is normal; within them all lines are down.",
      todo: "Within trading hours, check the host's network, then the exchange's notices.",
      view: "lines",
    },
  ];
}

function instruments(plant: Plant): Finding[] {
  const sum = (of: (feed: { recovering: number; stale: number }) => number) =>
    plant.feeds.reduce((all, feed) => all + of(feed), 0);
  const found: Finding[] = [];
  const recovering = sum((feed) => feed.recovering);
  const held = plant.holds("recovering", recovering > 0);
  if (held > PATIENCE) {
    found.push({
      id: "recovering",
      severity: "act",
      // They need not be the same throughout.
      title: `Some instruments have had no complete book for ${since(held)}, ${whole(recovering)} now`,
      means: "Snapshots or a replay should have restored them.",
      todo: "Check that the lines with snapshots are received, and that the replay answers.",
      view: "instruments?state=recovering",
    });
  }
  const stale = sum((feed) => feed.stale);
  if (plant.holds("stale", stale > 0) > PATIENCE) {
    found.push({
      id: "stale",
      severity: "watch",
      title: `${counted(stale, "instrument is", "instruments are")} stale`,
      means: "Their lines are silent, and their books may be out of date. Clients receive them as stale.",
      todo: "Within trading hours, check the lines.",
      view: "instruments?state=stale",
    });
  }
  return found;
}

function sessions(plant: Plant): Finding[] {
  const slow = plant.worst.filter((session) => (session.lag_ms ?? 0) > LAGS);
  const [worst] = slow;
  if (!worst) {
    return [];
  }
  const name = nameOf(worst);
  return [
    {
      id: "lag",
      severity: "watch",
      title: `Session ${name} is ${nanos((worst.lag_ms ?? 0) * 1e6)} behind`,
      means: "It reads more slowly than messages arrive for it. Other sessions do not wait for it.",
      todo: "Inform its operator, or log it out.",
      view: `sessions?sort=lag`,
    },
  ];
}

function ports(plant: Plant): Finding[] {
  const full = plant.status?.ports.filter((port) => port.sessions >= port.most) ?? [];
  return full.map((port) => ({
    id: `full ${port.name}`,
    severity: "act",
    title: `The port for ${port.name} is full: ${whole(port.sessions)} sessions`,
    means: "Further connections are refused.",
    todo:
      port.name === "dbn"
        ? "Raise max_clients of [dbn] and start the gateway again, or log out sessions that are not needed."
        : "Raise max_sessions and reload, or log out sessions that are not needed.",
    view: "sessions",
  }));
}
