import { assertInteger, assertKnownKeys } from '../kernel/arguments.js';
import { assertName, type Keyspace, type QueueKeys } from '../kernel/keyspace.js';
import { groupText, type Lane, type LaneBy, laneName, laneText } from '../kernel/lane.js';
import { type Queue, queueName } from '../kernel/queue.js';
import type { Executor } from '../wire/executor.js';
import type { Transition } from '../wire/transition.js';
import * as wire from '../wire/transitions/index.js';
import type { LaneRules } from './lane-rules.js';
import {
  type GroupView,
  groupView,
  isGroup,
  type LanePage,
  type LaneSettings,
  type LaneView,
  laneSettings,
  laneView,
  type StandingLaneSettings,
  type WeightSetting,
  weightSettings,
} from './lane-settings.js';

export interface LanesParts {
  readonly executor: Executor;
  readonly keyspace: Keyspace;
  readonly laneRules: LaneRules;
  readonly requestTimeoutMs: number;
}

const LIST_OPTIONS = new Set(['offset', 'limit']);
const MOST_PER_PAGE = 1000;
const NO_LANE = 'the jobs without a lane are limited by jobs.limit, with all others of their queue';
const OF_A_GROUP = 'caps, rates and maxWaiting are those of single lanes';

/**
 * Whose turn it is: lanes of a queue, a tenant's each say, are served in turn, by their weights. A job names its lane
 * when it is enqueued; a lane need not be made, and leaves nothing behind when it is idle and has no settings. A lane
 * is a name, or `[group, lane]`: the lanes of a group share the group's turns. Null stands for the jobs without a
 * lane, which have turns like a lane.
 *
 * Every method takes the queue first, refuses nonsense with an EchoArgumentError before a byte is sent, and rejects
 * with an EchoError when the server cannot do it. Settings hold from the next claim on, in every process.
 */
export class Lanes {
  /** @internal */
  constructor(private readonly parts: LanesParts) {}

  /** Changes the settings that are given; others stay. Of the jobs without a lane (null) there is a weight only. */
  async configure(queue: string | Queue, lane: Lane | null, settings: LaneSettings): Promise<void> {
    const keys = this.keys(queue);
    const name = laneName(lane);
    const what = "a lane's settings";
    const flat = lane === null ? weightSettings(settings, what, NO_LANE) : laneSettings(settings, what);
    await this.run(wire.lane, keys, { kind: 'lane', name, settings: flat });
  }

  /**
   * The same for all lanes of the queue that have no such setting of their own; not for the jobs without a lane, nor
   * for groups. Every known lane is judged anew, a thousand a time.
   */
  async configureDefault(queue: string | Queue, settings: LaneSettings): Promise<void> {
    const keys = this.keys(queue);
    const flat = laneSettings(settings, 'settings for all lanes');
    await this.run(wire.lane, keys, { kind: 'all', name: '', settings: flat });
    // One that is passed over, since lanes change places meanwhile, is judged anew by whatever happens to it next.
    for (let offset = 0; ; ) {
      const { lanes, total } = await this.run(wire.laneList, keys, { offset, limit: MOST_PER_PAGE });
      const own = lanes.filter((standing) => !isGroup(standing));
      await Promise.all(own.map(({ name }) => this.run(wire.lane, keys, { kind: 'lane', name, settings: [] })));
      offset += lanes.length;
      if (lanes.length === 0 || offset >= total) return;
    }
  }

  /** The weight that a group has among the queue's lanes and groups. Its lanes have weights among themselves. */
  async configureGroup(queue: string | Queue, group: string, settings: WeightSetting): Promise<void> {
    assertName(group, 'group');
    const flat = weightSettings(settings, "a group's settings", OF_A_GROUP);
    await this.set(queue, 'group', group, flat);
  }

  /** From now on nothing of the lane is claimed, by anybody; what runs goes on, and jobs may be enqueued. */
  async pause(queue: string | Queue, lane: Lane | null): Promise<void> {
    await this.set(queue, 'lane', laneName(lane), ['paused', '1']);
  }

  async resume(queue: string | Queue, lane: Lane | null): Promise<void> {
    await this.set(queue, 'lane', laneName(lane), ['paused', '']);
  }

  /** The same for all lanes of a group. */
  async pauseGroup(queue: string | Queue, group: string): Promise<void> {
    assertName(group, 'group');
    await this.set(queue, 'group', group, ['paused', '1']);
  }

  async resumeGroup(queue: string | Queue, group: string): Promise<void> {
    assertName(group, 'group');
    await this.set(queue, 'group', group, ['paused', '']);
  }

  /** Ends a hold of the lane that a handler has asked for by {@link RateLimited}. Its rate stays. */
  async liftHold(queue: string | Queue, lane: Lane): Promise<void> {
    await this.set(queue, 'lane', laneText(lane), ['until', '']);
  }

  /** How the lane stands. Of one that nobody has used or configured: empty, with no settings of its own. */
  async get(queue: string | Queue, lane: Lane | null): Promise<LaneView> {
    return laneView(await this.look(this.keys(queue), laneName(lane)));
  }

  /** What {@link configureDefault} has set. */
  async getDefault(queue: string | Queue): Promise<StandingLaneSettings> {
    const { lanes } = await this.run(wire.laneList, this.keys(queue), 'all');
    return laneView(lanes[0]!).settings;
  }

  async getGroup(queue: string | Queue, group: string): Promise<GroupView> {
    return groupView(await this.look(this.keys(queue), groupText(group)));
  }

  /** A page of the lanes and groups, those with most jobs waiting first: 1 to 1,000, default 100, from `offset`. */
  async list(
    queue: string | Queue,
    options: { offset?: number | undefined; limit?: number | undefined } = {},
  ): Promise<LanePage> {
    const keys = this.keys(queue);
    assertKnownKeys(options, LIST_OPTIONS, 'list options');
    const { offset = 0, limit = 100 } = options;
    assertInteger(offset, 'offset', 0);
    assertInteger(limit, 'limit', 1, MOST_PER_PAGE);
    const { lanes, total } = await this.run(wire.laneList, keys, { offset, limit });
    const end = offset + lanes.length;
    return {
      lanes: lanes.filter((standing) => !isGroup(standing)).map(laneView),
      groups: lanes.filter(isGroup).map(groupView),
      total,
      next: lanes.length > 0 && end < total ? end : undefined,
    };
  }

  /**
   * From now on jobs that this process enqueues to the queue without a lane get the one that `by` answers for them.
   * It is for those who know the queue by its name; a definition says it for whoever imports it: `defineQueue(name, {
   * lane })`.
   * @throws EchoRegistrationError when the queue has another function here, a processor's say, or that of its definition
   */
  assign(queue: string | Queue, by: LaneBy): this {
    const own = typeof queue === 'string' ? undefined : queue.lane;
    this.parts.laneRules.assign(this.keys(queue).queue, by, own);
    return this;
  }

  private async look(keys: QueueKeys, name: string): Promise<wire.LaneStanding> {
    const { lanes } = await this.run(wire.laneList, keys, { name });
    return lanes[0]!;
  }

  private set(queue: string | Queue, kind: 'lane' | 'group', name: string, settings: string[]): Promise<void> {
    return this.run(wire.lane, this.keys(queue), { kind, name, settings });
  }

  private keys(queue: string | Queue): QueueKeys {
    return this.parts.keyspace.queue(queueName(queue));
  }

  private run<Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call): Promise<Answer> {
    return this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs);
  }
}
