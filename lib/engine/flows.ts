import { show } from '../kernel/arguments.js';
import { EchoArgumentError, EchoError, EchoStateError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { Outbox } from '../wire/outbox.js';
import * as wire from '../wire/transitions/index.js';
import { childrenTokens, treeTokens } from '../wire/tree-tokens.js';
import { allLanded, EchoFlowsError } from './bulk-error.js';
import { Drafts, named } from './drafts.js';
import type { Enqueuer } from './enqueuer.js';
import type { AddedFlow, AddedNode, FlowNode } from './flow-calls.js';
import { type FlowPlan, type PlannedNode, planFlow, treeOf, treesOf } from './flow-plan.js';
import { FlowReads, type FlowReadsParts } from './flow-reads.js';
import type { LaneRules } from './lane-rules.js';
import type { Minting } from './minting.js';
import { Relay, type RelayHost } from './relay.js';

export interface FlowsParts extends FlowReadsParts, Omit<RelayHost, 'owes'> {
  readonly minting: Minting;
  readonly enqueuer: Enqueuer;
  readonly maxPayloadBytes: number;
  readonly enqueueTimeoutMs: number;
  readonly laneRules: LaneRules;
}

/**
 * Jobs that wait for other jobs. A parent runs once all its children have settled, in whatever queues they are; what becomes
 * of it when one of them dies is the child's `parentPolicy`. It is never left behind: every end of a child counts.
 */
export class Flows extends FlowReads {
  private readonly drafts: Drafts;
  private readonly relayHost: RelayHost;
  private readonly relays = new Map<string, Relay>();
  private closed = false;

  /** @internal */
  constructor(protected override readonly parts: FlowsParts) {
    super(parts);
    this.drafts = new Drafts(parts);
    this.relayHost = { ...parts, owes: (keys) => this.owes(keys) };
  }

  /**
   * Lands a flow: a tree of jobs of any depth, over any queues. The root and what is reached from it without leaving its queue
   * land in one atomic step, together with the debt of landing the rest. Every job has the options of `enqueue`, but parents no
   * delay, and a parent at most 100,000 children.
   * @throws EchoArgumentError saying where in the tree, EchoDataError; EchoStateError when an id other than the root's is taken
   */
  async add(flow: FlowNode): Promise<AddedFlow> {
    return this.landPlanned(this.plan([flow], 'flow'));
  }

  /**
   * Each flow all or nothing by itself; every one is looked at before the first is sent. Resolves, or rejects, once all of them
   * have been answered.
   * @throws EchoArgumentError saying where in which tree, EchoDataError
   * @throws EchoFlowsError when some of them did not land, or none: it says which did, and under which ids to add the others again
   */
  async addMany(flows: readonly FlowNode[]): Promise<AddedFlow[]> {
    if (!Array.isArray(flows)) throw new EchoArgumentError(`addMany takes an array, got ${show(flows)}`);
    const plan = this.plan(flows, 'flows');
    return allLanded(await this.landEach(plan), () => plan.nodes.map(({ draft }) => draft.id), EchoFlowsError);
  }

  /** @internal more children for a parent that is running. @throws EchoStateError when it does not hold its claim any more */
  async addChildren(keys: QueueKeys, id: string, token: string, children: readonly FlowNode[]): Promise<AddedNode[]> {
    if (!Array.isArray(children)) throw new EchoArgumentError(`addChildren takes an array, got ${show(children)}`);
    if (children.length === 0) return [];
    const plan = planFlow(this.drafts, this.parts.keyspace, children, {
      what: 'children',
      laneRules: this.parts.laneRules,
      parent: id,
    });
    await this.prepare(plan);
    const { tokens, owes } = childrenTokens(keys.queue, treesOf(plan.nodes, { queue: keys.queue, id }));
    const { answer } = await this.parts.enqueuer.sending(plan.all.length, () =>
      this.send(keys, { parent: id, token, tokens }),
    );
    if (answer !== 'landed') {
      throw new EchoStateError(`job ${id} cannot be given children: its claim is over`, 'ECHO_STALE');
    }
    if (owes) this.owes(keys);
    return plan.nodes.map(addedOf);
  }

  /**
   * @internal the queue may owe something to others: who has caused it relays it, once; so does, later, the process that leads
   * the queue
   */
  owes(keys: QueueKeys): void {
    if (this.closed) return;
    let relay = this.relays.get(keys.queue);
    if (relay === undefined) {
      relay = new Relay(this.relayHost, keys, () => this.relays.delete(keys.queue)); // queues may be tenants without end
      this.relays.set(keys.queue, relay);
    }
    relay.kick();
  }

  /** @internal resolves when nothing is being relayed, with how far it was read */
  rest(): Promise<string[]> {
    return Promise.all([...this.relays.values()].map((relay) => relay.rest()));
  }

  /** @internal relays all that an obliterated queue still owes, and forgets it */
  async settleDebts(keys: QueueKeys): Promise<void> {
    const relay = new Relay(this.relayHost, keys);
    await relay.flush();
    relay.stop();
    await new Outbox(this.parts.executor.connection, keys).erase();
  }

  /**
   * @internal does one thing to a job and all its descendants, leaves first; answers what it said of the job. `first` is the
   * first time that it is done to this job: it then answers `children_first` if there are any.
   */
  async fell<Answer extends string>(
    keys: QueueKeys,
    id: string,
    one: (job: { keys: QueueKeys; id: string; first: boolean }) => Promise<Answer>,
  ): Promise<Answer> {
    const answer = await one({ keys, id, first: true });
    if (answer !== 'children_first') return answer;
    await this.delivered(keys); // children that have not landed yet would land behind us
    for await (const page of this.familyOf(keys, id).members()) {
      await Promise.all(page.map((child) => this.fell(this.parts.keyspace.queue(child.queue), child.id, one)));
    }
    return one({ keys, id, first: false });
  }

  /** @internal for where nobody leads: relays what these queues owe, and what they owe for that, until nothing moves */
  async relayAll(queues: readonly QueueKeys[]): Promise<void> {
    let before: string | undefined;
    for (;;) {
      for (const keys of queues) this.owes(keys);
      const now = (await this.rest()).join();
      if (now === before) return;
      before = now;
    }
  }

  /** @internal no more relaying */
  stop(): void {
    this.closed = true;
    for (const relay of this.relays.values()) relay.stop();
  }

  /** Resolves when what the queue owes has been relayed, as far as that can be done now. */
  private async delivered(keys: QueueKeys): Promise<void> {
    const { metronome, requestTimeoutMs } = this.parts;
    this.owes(keys);
    const relay = this.relays.get(keys.queue);
    if (relay !== undefined) await metronome.within(requestTimeoutMs, relay.rest());
  }

  /** @internal lands one flow that was looked at */
  async landPlanned(plan: FlowPlan): Promise<AddedFlow> {
    const [landed] = await this.landEach(plan);
    if (landed instanceof EchoError) throw landed;
    return landed!;
  }

  private plan(flows: readonly FlowNode[], what: string): FlowPlan {
    return planFlow(this.drafts, this.parts.keyspace, flows, { what, laneRules: this.parts.laneRules });
  }

  /** Answers for each flow what became of it, or why it did not land; not before the last of them is answered. */
  private async landEach(plan: FlowPlan): Promise<(AddedFlow | EchoError)[]> {
    await this.prepare(plan);
    const landing = () => Promise.allSettled(plan.nodes.map((node) => this.landOne(node)));
    const settled = await this.parts.enqueuer.sending(plan.all.length, landing);
    return settled.map((one) => {
      if (one.status === 'fulfilled') return one.value;
      if (one.reason instanceof EchoError) return one.reason;
      throw one.reason;
    });
  }

  private async landOne(node: PlannedNode): Promise<AddedFlow> {
    const keys = this.parts.keyspace.queue(node.queue);
    const { tokens, owes } = treeTokens(treeOf(node));
    const { answer, resent } = await this.send(keys, { parent: '', token: '', tokens }, isFresh(node));
    if (owes) this.owes(keys);
    const landed = answer === 'landed' || (resent && node.draft.fresh);
    return { ...addedOf(node), status: landed ? 'landed' : 'duplicate' };
  }

  /** `resent`: the answer may be about what an earlier sending did. `fresh`: nobody else can have used these ids. */
  private async send(
    keys: QueueKeys,
    call: wire.LandCall,
    fresh = false,
  ): Promise<{ answer: wire.Landed; resent: boolean }> {
    const { executor, enqueueTimeoutMs } = this.parts;
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const timeoutMs = Number.isFinite(enqueueTimeoutMs) ? enqueueTimeoutMs : undefined;
    try {
      return { answer: await executor.run(wire.land, keys, call, timeoutMs, onResend), resent };
    } catch (error) {
      // The root has run and is gone meanwhile, and some of its children are still there: they have landed.
      if (resent && fresh && (error as EchoError).code === 'EMQSTATE') return { answer: 'exists', resent };
      throw error;
    }
  }

  /** Schemas have answered, and every job has an id. */
  private async prepare({ all, checking }: FlowPlan): Promise<void> {
    const { enqueuer, minting, enqueueTimeoutMs } = this.parts;
    if (checking.length > 0) await enqueuer.holding(all.length, Promise.all(checking));
    const nameless = all.filter(({ draft }) => draft.id === '');
    if (nameless.length === 0) return;
    await enqueuer.holding(nameless.length, minting.renewWithin(enqueueTimeoutMs));
    for (const { draft } of nameless) named(draft, minting.require());
  }
}

function addedOf({ queue, name, draft, children }: PlannedNode): AddedNode {
  return { queue, id: draft.id, name, children: children.map(addedOf) };
}

/** Every id of the tree was minted for it. */
function isFresh({ draft, children }: PlannedNode): boolean {
  return draft.fresh && children.every(isFresh);
}
