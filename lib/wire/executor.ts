import { createHash } from 'node:crypto';
import { EchoStoreError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { CallOptions, Connection } from './connection.js';
import type { Arg, Reply } from './reply.js';
import { textOf } from './script-text.js';
import type { ScriptName, Transition } from './transition.js';

interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Runs transitions as scripts: by hash, and once in full where the server does not know the hash. */
export class Executor {
  private readonly scripts = new Map<ScriptName, Script>();

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

  /** A script by name, for steps that concern more than one queue. */
  async script(name: ScriptName, keys: string[], args: Arg[], options: CallOptions): Promise<Reply> {
    const { sha, text } = this.edition(name);
    const rest: Arg[] = [keys.length, ...keys];
    for (let i = 0; i < args.length; i++) rest.push(args[i]!); // a spread of thousands would go through the stack
    try {
      return await this.connection.call('EVALSHA', [sha as Arg].concat(rest), options);
    } catch (error) {
      if (!(error instanceof EchoStoreError) || error.code !== 'NOSCRIPT') throw error;
      return this.connection.call('EVAL', [text as Arg].concat(rest), options);
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

  private edition(name: ScriptName): Script {
    let script = this.scripts.get(name);
    if (script === undefined) {
      const text = textOf(name, this.connection.cluster);
      script = { text, sha: createHash('sha1').update(text).digest('hex') };
      this.scripts.set(name, script);
    }
    return script;
  }
}
