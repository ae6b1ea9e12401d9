import { createHash } from 'node:crypto';
import { EchoStoreError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { CallOptions, Connection } from './connection.js';
import type { Arg, Reply } from './reply.js';
import { type Edition, hasPlainEdition, textOf } from './script-text.js';
import type { ScriptName, Transition } from './transition.js';

const MOST_REMEMBERED = 10_000;

interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Runs transitions as scripts: by hash, and once in full where the server does not know the hash. */
export class Executor {
  private readonly scripts: Record<Edition, Map<ScriptName, Script>> = { plain: new Map(), whole: new Map() };
  /** Queues that use more than plain jobs, by their bases; and those of which jobs have ties to others. */
  private readonly beyondPlain = new Set<string>();
  private readonly tied = new Set<string>();

  constructor(
    readonly connection: Connection,
    /** Called before the first transition on a queue; a cluster has a fence per queue. */
    private readonly firstTouch?: (keys: QueueKeys) => Promise<void>,
  ) {
    // Another connection may mean another server: what was learnt of its queues no longer holds.
    const forget = () => this.touched.clear();
    if (firstTouch) connection.listen({ up: forget, nodesChanged: forget, down: () => undefined });
  }

  private readonly touched = new Map<string, Promise<void>>();

  /** @throws EchoError; a refusal means that nothing was written */
  async run<Call, Answer>(
    step: Transition<Call, Answer>,
    keys: QueueKeys,
    call: Call,
    timeoutMs?: number,
    onResend?: () => void,
  ): Promise<Answer> {
    if (this.firstTouch !== undefined) await this.touch(keys);
    const names = step.keys;
    const places: string[] = [];
    for (let i = 0; i < names.length; i++) places.push(keys[names[i]!]);
    const options = { resend: step.resend, timeoutMs, onResend };
    const reply = await this.script(step.name, places, step.encode(call), options);
    return step.decode(reply, call);
  }

  /**
   * The same in full, not by hash, for what must stay in order: of a hash that the server does not know there is a second sending,
   * behind what was sent after it. Once answered, the hash is known.
   */
  async runInFull<Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call): Promise<Answer> {
    if (this.firstTouch !== undefined) await this.touch(keys);
    const { text } = this.edition(step.name, 'whole');
    const args: Arg[] = [text, step.keys.length, ...step.keys.map((name) => keys[name]), ...step.encode(call)];
    return step.decode(await this.connection.call('eval', args, { resend: step.resend }), call);
  }

  /** A script by name, for steps that concern more than one queue. */
  async script(name: ScriptName, keys: string[], args: Arg[], options: CallOptions): Promise<Reply> {
    const rest: Arg[] = [keys.length, ...keys];
    for (let i = 0; i < args.length; i++) rest.push(args[i]!); // a spread of thousands would go through the stack
    const base = keys[keys.length - 1]!;
    if (this.takesPlain(name, base)) {
      try {
        return await this.send(this.edition(name, 'plain'), rest, options);
      } catch (error) {
        if (!(error instanceof EchoStoreError)) throw error;
        // For good: a queue that has used lanes keeps them, and one that somebody has listened to once is not worth a second look. And
        // for all scripts: a settlement that was sent again would come behind the claim that followed it.
        if (error.code === 'EMQPLAIN') remember(this.beyondPlain, base);
        else if (error.code === 'EMQTIED') remember(this.tied, base);
        else throw error;
      }
    }
    return this.send(this.edition(name, 'whole'), rest, options);
  }

  /** As far as we know, a queue of plain jobs. */
  isPlain(keys: QueueKeys): boolean {
    return !this.beyondPlain.has(keys.base);
  }

  /** Will the plain edition do, as far as we know? */
  protected takesPlain(name: ScriptName, base: string): boolean {
    return hasPlainEdition(name) && !this.beyondPlain.has(base) && !(name === 'complete' && this.tied.has(base));
  }

  private async send({ sha, text }: Script, rest: Arg[], options: CallOptions): Promise<Reply> {
    try {
      return await this.connection.call('evalsha', [sha as Arg].concat(rest), options);
    } catch (error) {
      if (!(error instanceof EchoStoreError) || error.code !== 'NOSCRIPT') throw error;
      return this.connection.call('eval', [text as Arg].concat(rest), options);
    }
  }

  private touch(keys: QueueKeys): Promise<void> {
    let touched = this.touched.get(keys.base);
    if (touched === undefined) {
      touched = this.firstTouch!(keys).catch((error) => {
        this.touched.delete(keys.base);
        throw error;
      });
      this.touched.set(keys.base, touched);
    }
    return touched;
  }

  private edition(name: ScriptName, edition: Edition): Script {
    let script = this.scripts[edition].get(name);
    if (script === undefined) {
      const text = textOf(name, this.connection.cluster, edition);
      script = { text, sha: createHash('sha1').update(text).digest('hex') };
      this.scripts[edition].set(name, script);
    }
    return script;
  }
}

/** Names may come from tenants without end: what was learnt is forgotten when it is much. */
function remember(bases: Set<string>, base: string): void {
  if (bases.size >= MOST_REMEMBERED) bases.clear();
  bases.add(base);
}
