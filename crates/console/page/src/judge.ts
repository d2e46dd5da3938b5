// Is all well? Each thing that is not: what has happened, what it costs, and what to do about it.

import type { Plant } from "./plant";
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

const RULES: Rule[] = [
  {
    counters: ["gaps"],
    severity: "act",
    what: ["message of a feed came on no line", "messages of a feed came on no line"],
    means:
      "Books that these messages would have changed recover from pictures or a replay; until then they are not shown as live.",
    todo: "Look at the network of both lines, and whether the kernel dropped datagrams.",
    view: "lines",
  },
  {
    counters: ["kernel_drops", "picture_drops"],
    severity: "act",
    what: ["datagram was dropped by the kernel", "datagrams were dropped by the kernel"],
    means: "The receive buffer was full: the thread of the feeds came too late.",
    todo: "Raise net.core.rmem_max, pin the thread of the feeds, or give it a processor of its own.",
    view: "lines",
  },
  {
    counters: ["undecodable", "pictures_bad"],
    severity: "act",
    what: ["packet could not be decoded", "packets could not be decoded"],
    means: "What they held is missing. The exchange may have changed its templates.",
    todo: "Compare the template file with the exchange's, and reload.",
    view: "notices",
  },
  {
    counters: ["no_room"],
    severity: "act",
    what: ["message was left out for all consumers", "messages were left out for all consumers"],
    means: "The workers are behind the feed.",
    todo: "Give the gateway more workers, threads of their own, or a larger ring_bytes.",
    view: "stages",
  },
  {
    counters: ["log_missed", "log_failures", "raw_missed", "raw_failures"],
    severity: "act",
    what: ["event is not in the log", "events are not in the log"],
    means: "The log's disk is full, or slower than the feed.",
    todo: "Make room on the disk. What is missing can be had from the other site's log.",
    view: "notices",
  },
  {
    counters: ["slow_consumers"],
    severity: "act",
    what: [
      "consumer was disconnected: it read too slowly",
      "consumers were disconnected: they read too slowly",
    ],
    means: "They get what they missed when they log on again, as far as their contract says.",
    todo: "Tell whoever runs them. Notices say which, and how much waited for them.",
    view: "notices",
  },
  {
    counters: ["dropped", "dbn_skipped"],
    severity: "watch",
    what: ["message was left out for a slow consumer", "messages were left out for slow consumers"],
    means: "Each consumer was told what it misses. The others are not touched.",
    todo: "See which sessions lag; tell whoever runs them.",
    view: "sessions",
  },
  {
    counters: ["unsent", "samples_not_sent", "edge_untaken"],
    severity: "watch",
    what: ["sample was not taken by a DDS subscriber", "samples were not taken by DDS subscribers"],
    means: "A subscriber did not acknowledge in time, and the sample was left out for it.",
    todo: "Look at the subscriber's host and network.",
    view: "notices",
  },
  {
    counters: ["incompatible"],
    severity: "watch",
    what: [
      "DDS end asks for policies that do not fit",
      "DDS ends ask for policies that do not fit",
    ],
    means: "It receives nothing of the topic.",
    todo: "Compare its QoS with docs/gateway.md.",
    view: "notices",
  },
  {
    counters: ["book_faults"],
    severity: "watch",
    what: ["change did not fit its book", "changes did not fit their books"],
    means: "The books concerned recover; until then they are not shown as live.",
    todo: "If it goes on, the mapping does not fit the feed: compare it with the exchange's documents.",
    view: "instruments",
  },
  {
    counters: ["rejects"],
    severity: "watch",
    what: ["message of ours was rejected by a peer", "messages of ours were rejected by peers"],
    means: "The peer's rules differ from the version that it logged on with.",
    todo: "Notices have the peer's reason.",
    view: "notices",
  },
  {
    counters: ["audit_lost"],
    severity: "watch",
    what: ["line is not in the audit file", "lines are not in the audit file"],
    means: "Its disk is full or too slow.",
    todo: "Make room on the disk.",
    view: "notices",
  },
  {
    counters: ["console_refused"],
    severity: "watch",
    above: 20,
    what: ["request without the token", "requests without the token, or with a wrong one"],
    means: "A scraper has an old token, or somebody tries.",
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
  ];
  return found.sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
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
  const found: Finding[] = [];
  for (const feed of plant.feeds) {
    const changes = feed.lines.filter((line) => line.use === "changes");
    const isSilent = (ms: number | null) => ms === null || ms > SILENT;
    const silent = changes.filter((line) => isSilent(line.silence_ms));
    const id = `silent ${feed.channel}`;
    if (silent.length > 0 && silent.length < changes.length) {
      const names = silent.map((line) => line.line).join(", ");
      const longest = Math.max(...silent.map((line) => line.silence_ms ?? 0));
      found.push({
        id,
        severity: "act",
        title: `Line ${names} of ${feed.channel} is silent${longest > 0 ? ` for ${since(longest)}` : ""}`,
        means: "The feed goes on by the other line alone: what that one loses is lost.",
        todo: "Look at the line's network, its group, and the exchange's notices.",
        view: "lines",
      });
    } else if (changes.length > 0 && silent.length === changes.length && feed.messages > 0) {
      found.push({
        id,
        severity: "watch",
        title: `Nothing is heard of ${feed.channel} for ${since(feed.silence_ms)}`,
        means: "Outside of trading hours this is as it should be; within them all lines are cut.",
        todo: "Within trading hours: look at the host's network, then at the exchange's notices.",
        view: "lines",
      });
    }
  }
  return found;
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
      title: `${counted(recovering, "instrument has", "instruments have")} no whole book for ${since(held)}`,
      means: "Pictures or a replay should have brought them back.",
      todo: "Look whether the lines with pictures are heard, and whether the replay answers.",
      view: "instruments?state=recovering",
    });
  }
  const stale = sum((feed) => feed.stale);
  if (plant.holds("stale", stale > 0) > PATIENCE) {
    found.push({
      id: "stale",
      severity: "watch",
      title: `${counted(stale, "instrument is", "instruments are")} stale`,
      means: "Their lines are silent, so that their books may be old. Clients see them as stale.",
      todo: "Outside of trading hours nothing; within them look at the lines.",
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
  const name = worst.sender;
  return [
    {
      id: "lag",
      severity: "watch",
      title: `Session ${name} is ${nanos((worst.lag_ms ?? 0) * 1e6)} behind`,
      means: "It reads more slowly than messages come for it. The others do not wait for it.",
      todo: "Tell whoever runs it, or log it out: then it begins anew.",
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
    means: "Further peers are turned away.",
    todo: "Raise max_sessions and reload, or log out sessions that should not be there.",
    view: "sessions",
  }));
}
