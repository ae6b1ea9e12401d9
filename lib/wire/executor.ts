import { createHash } from 'node:crypto';
import { type EchoError, EchoStoreError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { CallOptions, Connection } from './connection.js';
import { makeRoom } from './make-room.js';
import type { Arg, Reply } from './reply.js';
import { type Edition, hasPlainEdition, textOf } from './script-text.js';
import type { ScriptName, Transition } from './transition.js';

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
  run<Call, Answer>(
    step: Transition<Call, Answer>,
    keys: QueueKeys,
    call: Call,
    timeoutMs?: number,
    onResend?: () => void,
  ): Promise<Answer> {
    const options = { resend: step.resend, timeoutMs, onResend };
    if (this.firstTouch !== undefined) return this.touch(keys).then(() => this.step(step, keys, call, options));
    return this.step(step, keys, call, options);
  }

  /**
   * The same, sent once, for a step that a job waits for: one of the two is called in the moment the answer is read, with no promise in
   * between and in no particular async context.
   */
  runAtOnce<Call, Answer>(
    step: Transition<Call, Answer>,
    keys: QueueKeys,
    call: Call,
    answer: (answer: Answer) => void,
    failure: (error: EchoError) => void,
  ): void {
    const { connection } = this;
    const { sha, text } = this.edition(step.name, 'whole');
    const send = () => {
      const args = argsOf(step, keys, call);
      args[0] = sha;
      const read = (reply: Reply) => answer(step.decode(reply, call));
      connection.callAtOnce('evalsha', args, read, (error) => {
        if (error.code !== 'NOSCRIPT') return failure(error);
        args[0] = text;
        connection.callAtOnce('eval', args, read, failure);
      });
    };
    if (this.firstTouch === undefined) send();
    else this.touch(keys).then(send, failure);
  }

  private step<Call, Answer>(
    step: Transition<Call, Answer>,
    keys: QueueKeys,
    call: Call,
    options: CallOptions,
  ): Promise<Answer> {
    return this.evaluate(step.name, keys.base, argsOf(step, keys, call), options, (reply) => step.decode(reply, call));
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
  script(name: ScriptName, keys: string[], args: Arg[], options: CallOptions): Promise<Reply> {
    const all = append(['', keys.length, ...keys], args);
    return this.evaluate(name, keys[keys.length - 1]!, all, options, (reply) => reply);
  }

  /** As far as we know, a queue of plain jobs. */
  isPlain(keys: QueueKeys): boolean {
    return !this.beyondPlain.has(keys.base);
  }

  /** Will the plain edition do, as far as we know? */
  protected takesPlain(name: ScriptName, base: string): boolean {
    return hasPlainEdition(name) && !this.beyondPlain.has(base) && !(name === 'complete' && this.tied.has(base));
  }

  /** `args` has an empty place in front, for the script. */
  private evaluate<Answer>(
    name: ScriptName,
    base: string,
    args: Arg[],
    options: CallOptions,
    read: (reply: Reply) => Answer,
  ): Promise<Answer> {
    if (!this.takesPlain(name, base)) return this.send(this.edition(name, 'whole'), args, options, read);
    return this.send(this.edition(name, 'plain'), args, options, read).catch((error) => {
      if (!(error instanceof EchoStoreError)) throw error;
      // For good: a queue that has used lanes keeps them, and one that somebody has listened to once is not worth a second look. And
      // for all scripts: a settlement that was sent again would come behind the claim that followed it.
      if (error.code !== 'EMQPLAIN' && error.code !== 'EMQTIED') throw error;
      const learnt = error.code === 'EMQPLAIN' ? this.beyondPlain : this.tied;
      makeRoom(learnt, base);
      learnt.add(base);
      return this.send(this.edition(name, 'whole'), args, options, read);
    });
  }

  private send<Answer>(
    { sha, text }: Script,
    args: Arg[],
    options: CallOptions,
    read: (reply: Reply) => Answer,
  ): Promise<Answer> {
    args[0] = sha;
    // As many promises on the second way as on the first, or an answer could be told after that of a later call.
    return new Promise((resolve, reject) => {
      const answer = (reply: Reply) => {
        try {
          resolve(read(reply));
        } catch (error) {
          reject(error);
        }
      };
      this.connection.call('evalsha', args, options).then(answer, (error) => {
        if (!(error instanceof EchoStoreError) || error.code !== 'NOSCRIPT') return reject(error);
        args[0] = text;
        this.connection.call('eval', args, options).then(answer, reject);
      });
    });
  }

  private touch(keys: QueueKeys): Promise<void> {
    let touched = this.touched.get(keys.base);
    if (touched === undefined) {
      touched = this.firstTouch!(keys).catch((error) => {
        this.touched.delete(keys.base);
        throw error;
      });
      makeRoom(this.touched, keys.base);
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

/** All arguments, with an empty place in front for the script. */
function argsOf<Call>(step: Transition<Call, unknown>, keys: QueueKeys, call: Call): Arg[] {
  const names = step.keys;
  const args: Arg[] = ['', names.length];
  for (let i = 0; i < names.length; i++) args.push(keys[names[i]!]);
  return append(args, step.encode(call));
}

/** A spread of thousands would go through the stack. */
function append(args: Arg[], more: readonly Arg[]): Arg[] {
  for (let i = 0; i < more.length; i++) args.push(more[i]!);
  return args;
}
