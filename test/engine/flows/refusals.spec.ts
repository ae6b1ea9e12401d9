import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import {
  defineQueue,
  EchoArgumentError,
  EchoDataError,
  type FlowNode,
  flowNode,
  type StandardSchema,
} from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { failure, numbers } from '../jobs/stage.js';
import { node, useFlowStage } from './stage.js';

/** A schema that answers when it is told. */
function slow(answers: Promise<{ issues: { message: string }[] } | { value: unknown }>): StandardSchema {
  return { '~standard': { version: 1, vendor: 'test', validate: () => answers } };
}

const bad = (more: object) => ({ ...node('q', 'job'), ...more }) as FlowNode;

describe('a flow that makes no sense', () => {
  const stage = useFlowStage();

  it.each<[string, FlowNode, string]>([
    ['no node', null as unknown as FlowNode, 'flow must be an object, got null'],
    ['a key too many', bad({ parent: 1 }), "flow: unknown option 'parent'"],
    ['no name', bad({ name: '' }), "flow: a job's name must be a string"],
    ['no queue', bad({ queue: undefined }), 'flow: queue name must be a string'],
    ['a queue that cannot be', bad({ queue: 'a{b}' }), 'flow: queue name "a{b}" holds a brace'],
    ['children that are no list', bad({ children: {} }), 'flow.children must be an array, got object'],
    ['an unknown option', bad({ opts: { delay: 1 } }), "flow: enqueue options: unknown option 'delay' (here: delayMs)"],
    ['a priority that is none', bad({ opts: { priority: 0.5 } }), 'flow: priority must be a whole number'],
    ...[null, 5, true, 'x', [], () => 1].map((opts): [string, FlowNode, string] => [
      `options that are none: ${opts}`,
      node('q', 'root', [bad({ opts })]),
      'flow.children[0]: enqueue options must be an object, got ',
    ]),
    [
      'a policy of the root',
      bad({ opts: { parentPolicy: 'fail' } }),
      'flow has no parent: parentPolicy is for children',
    ],
    [
      'a policy that is none',
      node('q', 'root', [bad({ opts: { parentPolicy: 'wait' } })]),
      'flow.children[0]: parentP',
    ],
    [
      'a parent with a delay',
      node('q', 'root', [node('q', 'child')], { delayMs: 1 }),
      'flow has children: it runs when',
    ],
    [
      'deep within',
      node('q', 'root', [node('q', 'a'), node('q', 'b', [node('q', 'c'), bad({ data: 1n })])]),
      'flow.children[1].children[1]: data cannot be serialised',
    ],
  ])('is refused before anything is sent: %s', async (_what, flow, message) => {
    const { flows } = await stage.connect();
    const error = await failure(flows.add(flow));
    expect(error).toBeInstanceOf(EchoArgumentError);
    expect(error.message.slice(0, message.length)).toBe(message);
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('is refused among many, and none of them is sent', async () => {
    const { flows } = await stage.connect();
    const error = await failure(flows.addMany([node('q', 'good'), node('q', 'root', [bad({ name: 1 })])]));
    expect(error.message).toContain("flows[1].children[0]: a job's name");
    expect((await failure(flows.addMany({} as FlowNode[]))).message).toBe('addMany takes an array, got object');
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('is refused when it is deeper than 500 levels, or has children in a circle', async () => {
    const { flows } = await stage.connect();
    const chain = (levels: number) =>
      numbers(levels).reduce<FlowNode | undefined>(
        (below, i) => node('q', `level ${i}`, below ? [below] : []),
        undefined,
      )!;
    const [child, end] = ['.children[0]', Array.from({ length: 2 }, () => '.children[0]').join('')];
    const message = `a flow is at most 500 levels deep, and no circle: flow${end} ... 495 levels ... ${end}${child}`;
    expect((await failure(flows.add(chain(501)))).message).toBe(message);
    const circle = node('q', 'round', []) as { children: FlowNode[] } & FlowNode;
    circle.children = [circle];
    expect((await failure(flows.add(circle))).message).toBe(message);
    expect((await flows.add(chain(500))).status).toBe('landed');
  });

  it('says shortly where it makes no sense deep within', async () => {
    const { flows } = await stage.connect();
    const within = async (levels: number, what: object) => {
      const deep = numbers(levels).reduce((below) => node('q', 'level', [node('q', 'leaf'), below]), bad(what));
      return (await failure(flows.add(deep))).message;
    };
    const [two, three] = ['.children[1].children[1]', '.children[1].children[1].children[1]'];
    expect(await within(6, { name: '' })).toMatch(`flow${three}${three}: a job's name must be`);
    expect(await within(100, { name: '' })).toMatch(`flow${two} ... 95 levels ... ${three}: a job's name must be`);
    expect(await within(100, { children: 5 })).toBe(
      `flow${two} ... 95 levels ... ${three}.children must be an array, got 5`,
    );
  });

  it('is refused by flowNode when what comes with it is none', () => {
    for (const more of [null, 5, true, [], () => 1]) {
      const make = () => flowNode('q', 'job', 1, more as object);
      expect(make).toThrow(EchoArgumentError);
      expect(make).toThrow('flowNode options must be an object, got ');
    }
    expect(() => flowNode('q', 'job', 1, { delayMs: 5 } as object)).toThrow("unknown option 'delayMs'");
    expect(flowNode('q', 'job', 1, undefined)).toEqual({ queue: 'q', name: 'job', data: 1 });
  });

  it('is refused when it gives a parent more than 100,000 children, at any place and in any way', async () => {
    const echo = await stage.connect();
    const { flows, jobs } = echo;
    const job = { queue: 'q', name: 'child' };
    const many = (count: number): FlowNode[] => new Array(count).fill(job);
    const tooMany = async (call: Promise<unknown>) => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(EchoArgumentError);
      return error.message;
    };
    const why = 'a parent can be given at most 100000 children in one call, got 100001';
    const wide = node('q', 'wide', many(100_001));
    expect(await tooMany(flows.add(wide))).toBe(`flow.children: ${why}`);
    expect(await tooMany(flows.add(node('q', 'root', [wide])))).toBe(`flow.children[0].children: ${why}`);
    expect(await tooMany(flows.addMany([node('q', 'good'), wide]))).toBe(`flows[1].children: ${why}`);
    // biome-ignore lint/suspicious/noThenProperty: it is what the option is called, and no function
    expect(await tooMany(jobs.enqueueMany('q', many(100_001), { then: { name: 'done' } }))).toBe(`items: ${why}`);
    expect(await tooMany(flows.add(node('q', 'root', [...many(99_999), bad({ name: '' })])))).toMatch(
      /^flow\.children\[99999\]: a job's name/, // as many as may be
    );
    expect(await stage.control.keys('emq:*')).toEqual([]);

    let told: Promise<string> | undefined;
    echo.consume('q', {}, (running) => {
      told = tooMany(running.addChildren(many(100_001)));
      return told;
    });
    await jobs.enqueueAndWait('q', 'parent', undefined);
    expect(await told).toBe(`children: ${why}`);
    expect(await stage.control.keys('emq:{q}:job:*:children')).toEqual([]);
  });

  it('is refused by the schema of any of its jobs, which says where and has its issues', async () => {
    const { flows } = await stage.connect();
    const Mail = defineQueue('mail', { welcome: z.object({ to: z.string() }) });
    const child = (data: unknown, name = 'welcome') => ({ queue: Mail, name, data });
    const flow = (...children: FlowNode[]) => ({ queue: 'q', name: 'root', children });
    const error = await failure<EchoDataError>(flows.add(flow(child({ to: 'Ada' }), child({ to: 1 }))));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error.message).toBe(
      "flow.children[1]: the data of 'welcome' for queue 'mail' does not fit its schema: 1 issue at to",
    );
    expect(error.issues).toEqual([{ path: ['to'], message: expect.any(String) }]);
    const undeclared = await failure(flows.add(flow(child({}, 'welcom'))));
    expect(undeclared.message).toBe(`flow.children[0]: queue 'mail' declares no job "welcom". Declared are welcome`);
    expect(await stage.control.keys('emq:*')).toEqual([]);
    expect((await flows.add(flow(child({ to: 'Ada' })))).status).toBe('landed');
  });

  it('is refused by schemas that answer later, too, which say where', async () => {
    const { flows } = await stage.connect();
    const Late = defineQueue('late', {
      fits: slow(Promise.resolve({ value: 1 })),
      not: slow(Promise.resolve({ issues: [{ message: 'no' }] })),
    });
    const flow = node('q', 'root', [
      { queue: Late, name: 'fits' },
      { queue: 'q', name: 'mid', children: [{ queue: Late, name: 'not' }] },
    ]);
    const error = await failure<EchoDataError>(flows.add(flow));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error.message).toMatch(/^flow\.children\[1]\.children\[0]: the data of 'not' for queue 'late'/);
    expect(error.issues).toEqual([{ path: [], message: 'no' }]);
    const worse = node('q', 'root', [...flow.children!, bad({ name: '' })]);
    expect((await failure(flows.add(worse))).message).toContain('flow.children[2]');
    expect(await stage.control.keys('emq:*')).toEqual([]);
  });

  it('is asked about with wrong arguments: reads reject', async () => {
    const { flows, jobs } = await stage.connect();
    const id = jobs.mintId();
    const reads = ['childrenValues', 'dependencies', 'ignoredFailures', 'failures', 'children', 'tree'] as const;
    for (const read of reads) {
      expect(await failure(flows[read]('q', 'no id'))).toBeInstanceOf(EchoArgumentError);
      expect(await failure(flows[read]('a{b}', id))).toBeInstanceOf(EchoArgumentError);
    }
    for (const options of [{ depth: -1 }, { depth: Number.NaN }, { limit: 0 }, { limit: 1001 }, { width: 1 }]) {
      expect(await failure(flows.tree('q', id, options as object))).toBeInstanceOf(EchoArgumentError);
    }
  });

  it('cannot be landed while the server is away and too many jobs wait for it', async () => {
    const proxy = await stage.proxy();
    const lost: Error[] = [];
    const { flows, jobs } = await stage.connect({
      connection: proxy.url,
      enqueueBufferLimit: 3,
      onError: (error) => lost.push(error),
    });
    await jobs.enqueue('q', 'before');
    proxy.refuse();
    proxy.cut();
    await until(() => lost.length > 0, { what: 'the loss to be noticed' });
    const refused = async () =>
      (
        await flows.add(
          node(
            'q',
            'big',
            numbers(5).map((i) => node('q', `${i}`)),
          ),
        )
      ).id;
    expect(await failure(refused())).toMatchObject({ code: 'ECHO_BUFFER_FULL', retryable: true });
    const fits = flows.add(node('q', 'small', [node('q', 'child')]));
    proxy.accept();
    expect((await fits).status).toBe('landed');
    expect((await jobs.counts('q')).metrics.enqueued).toBe(3);
  });
});
