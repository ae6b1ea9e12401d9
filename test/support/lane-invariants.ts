import type { QueueView } from './queue-view.js';

const SEP = '\u001f';
/** Members of `lanes:parked` that are no lanes: the queue held back as a whole, and a ring with idle lanes to forget. */
const isSpecial = (member: string) => member.startsWith(SEP);
const SETTINGS = ['weight', 'cap', 'interval', 'burst', 'max_waiting', 'paused'];

/** The group that a lane's name says, with its separator; '' of none. */
export function groupOf(name: string): string {
  const at = name.indexOf(SEP);
  return at < 0 || at === name.length - 1 ? '' : name.slice(0, at + 1);
}

const isGroup = (name: string) => name.length > 1 && name.indexOf(SEP) === name.length - 1;

/** I8: each lane is in exactly one place, and what is written down of lanes adds up. */
export function lanes(view: QueueView): string[] {
  const book = new LaneBook(view);
  if (book.wrongTypes.length > 0) return book.wrongTypes;
  if (!book.begun) return book.none();
  return [
    ...book.names().flatMap((name) => [...book.standing(name), ...book.running(name), ...book.known(name)]),
    ...book.groups().flatMap((group) => book.group(group)),
    ...book.strangers(),
    ...book.tags(),
    ...book.totals(),
  ];
}

/** Section 8, from history: virtual time never goes back. Undefined where there are no lanes. */
export function floorOf(view: QueueView): number | undefined {
  const floor = view.dump['lanes:floor'];
  return floor && 'string' in floor ? Number(floor.string) : undefined;
}

type Fields = Readonly<Record<string, string>>;

/** What a dump says of lanes. */
class LaneBook {
  readonly wrongTypes: string[] = [];
  readonly begun: boolean;
  private readonly waiting: ReadonlyMap<string, number>;
  private readonly parked: ReadonlyMap<string, number>;
  private readonly active: Fields;
  private readonly defaults: Fields;
  /** Ring, '' or the group with its separator, to its members. */
  private readonly rings = new Map<string, ReadonlyMap<string, number>>();

  constructor(private readonly view: QueueView) {
    this.begun = 'lanes:floor' in view.dump;
    this.waiting = this.zset('lanes:waiting');
    this.parked = this.zset('lanes:parked');
    this.active = this.hash('lanes:active');
    this.defaults = this.hash('lanes:defaults');
    this.rings.set('', this.zset('lanes'));
    for (const key of this.keysOf('lanegroup:')) this.rings.set(key + SEP, this.zset(`lanegroup:${key}`));
  }

  /** Every lane that anything speaks of; '' among them. */
  names(): string[] {
    const rows = [...this.view.rows.values()].flatMap(({ state, lane }) =>
      lane !== undefined && (state === 'pending' || state === 'active') ? [lane] : [],
    );
    const all = new Set(['', ...rows, ...this.waiting.keys(), ...Object.values(this.active), ...this.keysOf('lane:')]);
    for (const name of [...this.keysOf('lanestate:'), ...this.parked.keys()]) if (!isSpecial(name)) all.add(name);
    for (const ring of this.rings.values()) for (const name of ring.keys()) all.add(name);
    return [...all].filter((name) => !isGroup(name)).sort();
  }

  groups(): string[] {
    const all = new Set([...this.keysOf('lanegroupstate:'), ...this.keysOf('lanegroup:')].map((key) => key + SEP));
    for (const name of [...this.waiting.keys(), ...this.ring('').keys()]) if (isGroup(name)) all.add(name);
    for (const name of this.names()) if (groupOf(name) !== '' && this.waiting.has(name)) all.add(groupOf(name));
    return [...all].sort();
  }

  /** In its ring or parked, never both, exactly while it has a job, is under its cap and is not paused. */
  standing(name: string): string[] {
    const shown = show(name);
    const inRing = this.ring(groupOf(name)).has(name);
    const until = this.parked.get(name);
    if (inRing && until !== undefined) return [`I8 lane ${shown} is in its ring and parked`];
    const gives = this.size(name) > 0 && this.state(name).paused === undefined && !this.isFull(name);
    if (gives !== (inRing || until !== undefined)) {
      const where = inRing ? 'in its ring' : until !== undefined ? 'parked' : 'nowhere';
      return [`I8 lane ${shown}, which ${gives ? 'has' : 'can give no'} jobs, is ${where}`];
    }
    const due = Math.ceil(this.freeAt(name));
    return until !== undefined && until !== due ? [`I8 lane ${shown} is parked until ${until}, not ${due}`] : [];
  }

  /** Its count of running jobs. */
  running(name: string): string[] {
    const counted = Number(this.state(name).active ?? 0);
    const found = name === '' ? 0 : Object.values(this.active).filter((lane) => lane === name).length;
    return counted === found ? [] : [`I8 lane ${show(name)} counts ${counted} active, and ${found} are`];
  }

  /** Known as long as it has jobs, settings or a debt, with the number of its jobs; and forgotten afterwards. */
  known(name: string): string[] {
    if (name === '') return [];
    const score = this.waiting.get(name);
    const size = this.size(name);
    const state = this.view.dump[`lanestate:${name}`];
    if (score === undefined) {
      const lasting = size > 0 || Number(this.state(name).active ?? 0) > 0 || (state && !state.expires);
      return lasting ? [`I8 lane ${show(name)} is not among the known`] : [];
    }
    if (score !== size) return [`I8 lane ${show(name)} is known with ${score} jobs, and has ${size}`];
    if (state?.expires) return [`I8 lane ${show(name)} is known, and its state will expire`];
    const busy = size > 0 || Number(this.state(name).active ?? 0) > 0 || this.isConfigured(this.state(name));
    return busy ? [] : this.owes(name, groupOf(name), this.state(name).tag);
  }

  /** It stands for its lanes in the outer ring exactly while one of them stands in its own. */
  group(group: string): string[] {
    const shown = show(group);
    const state = this.hash(`lanegroupstate:${group.slice(0, -1)}`);
    const faults: string[] = [];
    const inRing = this.ring('').has(group);
    const gives = this.ring(group).size > 0 && state.paused === undefined;
    if (gives !== inRing) faults.push(`I8 group ${shown} ${inRing ? 'is' : 'is not'} in the ring of groups`);
    const mine = [...this.waiting.keys()].filter((name) => groupOf(name) === group).length;
    if (Number(state.lanes ?? 0) !== mine)
      faults.push(`I8 group ${shown} counts ${state.lanes} lanes, and has ${mine}`);
    if (this.waiting.get(group) !== 0) faults.push(`I8 group ${shown} is known with ${this.waiting.get(group)} jobs`);
    if (mine === 0 && !this.isConfigured(state)) faults.push(...this.owes(group, '', state.tag));
    return faults;
  }

  /** Ids of running jobs, and members of rings that are not its own. */
  strangers(): string[] {
    const faults: string[] = [];
    for (const [id, lane] of Object.entries(this.active)) {
      const row = this.view.rows.get(id);
      const runs = this.view.places.get(id)?.some(({ key }) => key === 'active');
      if (!runs) faults.push(`I8 ${id} counts as running in lane ${show(lane)}, and does not run`);
      if (row !== undefined && row.lane !== lane) faults.push(`I8 ${id} runs in lane ${show(lane)}, not ${row.lane}`);
    }
    for (const [id, { state, lane }] of this.view.rows) {
      if (state === 'active' && lane !== undefined && this.active[id] === undefined)
        faults.push(`I8 ${id} runs, and its lane ${show(lane)} does not know`);
    }
    for (const [ring, members] of this.rings) {
      for (const name of members.keys()) {
        if (groupOf(name) !== ring || (ring !== '' && isGroup(name)))
          faults.push(`I8 ${show(name)} stands in ring ${show(ring)}`);
      }
    }
    return faults;
  }

  /** Nobody in a ring is behind its virtual time. */
  tags(): string[] {
    return [...this.rings].flatMap(([ring, members]) => {
      const floor = this.floor(ring);
      return [...members].flatMap(([name, score]) => {
        if (score < floor) return [`I8 ${show(name)} stands at ${score}, below the floor ${floor}`];
        const { tag = 0 } = isGroup(name) ? this.hash(`lanegroupstate:${name.slice(0, -1)}`) : this.state(name);
        return score < Number(tag) ? [`I8 ${show(name)} stands at ${score}, before its tag ${tag}`] : [];
      });
    });
  }

  totals(): string[] {
    const held = this.view.dump['lanes:total'];
    const total = held && 'string' in held ? Number(held.string) : 0;
    const sum = [...this.waiting.values()].reduce((a, b) => a + b, 0);
    return total === sum ? [] : [`I8 lanes:total is ${total}, and ${sum} jobs wait in lanes`];
  }

  /** A queue that never used a lane has none of their keys; it may be held back as a whole. */
  none(): string[] {
    const { dump } = this.view;
    const keys = Object.keys(dump).filter((key) =>
      /^(lane|lane(state|idle|group|groupstate)):|^lanes$|^lanes:(active|waiting|total|defaults)$/.test(key),
    );
    const lasting = keys.filter((key) => !dump[key]!.expires); // a lane's debt outlives an obliterated queue
    const members = [...this.parked.keys()].filter((member) => member !== SEP);
    return [...lasting, ...members].map((what) => `I8 ${show(what)} is there, and lanes have not begun`);
  }

  /** Kept though idle: it must owe something to the others, or stand where it will be forgotten. */
  private owes(name: string, ring: string, tag: string | undefined): string[] {
    const idle = this.zset(`laneidle:${ring.slice(0, -1)}`).get(name);
    if (idle === undefined) return [`I8 ${show(name)} is idle, and nobody will forget it`];
    return idle === Number(tag ?? 0) ? [] : [`I8 ${show(name)} is idle at ${idle}, and its tag is ${tag}`];
  }

  private isConfigured(state: Fields): boolean {
    return SETTINGS.some((name) => state[name] !== undefined);
  }

  private isFull(name: string): boolean {
    const cap = Number(this.setting(name, 'cap'));
    return cap > 0 && Number(this.state(name).active ?? 0) >= cap;
  }

  private freeAt(name: string): number {
    const { until = 0, tat = 0 } = this.state(name);
    const interval = Number(this.setting(name, 'interval'));
    const burst = Number(this.setting(name, 'burst') ?? 1);
    return interval > 0 ? Math.max(Number(until), Number(tat) - (burst - 1) * interval) : Number(until);
  }

  private setting(name: string, setting: string): string | undefined {
    return this.state(name)[setting] ?? (name === '' ? undefined : this.defaults[setting]);
  }

  private size(name: string): number {
    return this.zset(name === '' ? 'pending' : `lane:${name}`).size;
  }

  private state(name: string): Fields {
    return this.hash(`lanestate:${name}`);
  }

  private ring(ring: string): ReadonlyMap<string, number> {
    return this.rings.get(ring) ?? new Map();
  }

  private floor(ring: string): number {
    return ring === '' ? floorOf(this.view)! : Number(this.hash(`lanegroupstate:${ring.slice(0, -1)}`).floor ?? 0);
  }

  private keysOf(start: string): string[] {
    return Object.keys(this.view.dump).flatMap((key) => (key.startsWith(start) ? [key.slice(start.length)] : []));
  }

  private zset(key: string): ReadonlyMap<string, number> {
    const held = this.view.dump[key];
    if (held === undefined || 'zset' in held) return new Map(held?.zset);
    this.wrongTypes.push(`row ${show(key)} has the wrong type`);
    return new Map();
  }

  private hash(key: string): Fields {
    const held = this.view.dump[key];
    if (held === undefined) return {};
    if ('hash' in held) return held.hash;
    this.wrongTypes.push(`row ${show(key)} has the wrong type`);
    return {};
  }
}

function show(name: string): string {
  return JSON.stringify(name.replaceAll(SEP, '/'));
}
