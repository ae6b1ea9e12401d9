import { describe, expect, it } from '@jest/globals';
import { type ArgumentsHost, Catch, type ExceptionFilter, Injectable, UseFilters, UseGuards } from '@nestjs/common';
import { z } from 'zod';
import {
  defineQueue,
  EchoDataError,
  EchoJobError,
  EchoMqModule,
  Flows,
  flowNode,
  getFlowsToken,
  InjectFlows,
  InjectJobs,
  type Job,
  JobData,
  type JobOf,
  JobRef,
  Jobs,
  OnJob,
  Processor,
  WaitForChildren,
} from '../../lib/index.js';
import { expectInvariantsOf } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, useApps } from './apps.js';

const Pages = defineQueue('pages', { render: z.object({ page: z.coerce.number() }) });
const Books = defineQueue<{ bind: { title: string }; grow: { pages: number } }>('books');

@Processor(Pages)
class PageProcessor {
  @OnJob('render')
  render({ data }: JobOf<typeof Pages, 'render'>): string {
    if (data.page < 0) throw new Error('no such page');
    return `page ${data.page}`;
  }
}

const caught: unknown[] = [];

@Catch()
class CatchAll implements ExceptionFilter {
  catch(error: unknown, _host: ArgumentsHost): void {
    caught.push(error);
  }
}

@Processor(Books)
class BookProcessor {
  @OnJob('bind')
  async bind(job: JobOf<typeof Books, 'bind'>): Promise<string> {
    const { values, ignored } = await job.children();
    const missing = Object.keys(ignored).length;
    return `${job.data.title}: ${Object.values(values).join(', ')}${missing > 0 ? `; ${missing} missing` : ''}`;
  }

  @OnJob('grow')
  @UseGuards({ canActivate: () => true })
  @UseFilters(CatchAll)
  async grow(@JobData() { pages }: { pages: number }, @JobRef() job: Job): Promise<number> {
    const { values } = await job.children();
    if (Object.keys(values).length > 0) return Object.keys(values).length;
    await job.addChildren(Array.from({ length: pages }, (_, page) => flowNode(Pages, 'render', { page })));
    throw new WaitForChildren();
  }
}

@Injectable()
class Library {
  constructor(
    readonly flows: Flows,
    readonly jobs: Jobs,
  ) {}

  async print(title: string, pages: number[]): Promise<unknown> {
    const opts = { parentPolicy: 'ignore', attempts: 1 } as const;
    const children = pages.map((page) => flowNode(Pages, 'render', { page }, { opts }));
    const { id } = await this.flows.add(flowNode(Books, 'bind', { title }, { children, opts: { keepMs: 60_000 } }));
    return this.jobs.wait(Books, id);
  }
}

@Injectable()
class Elsewhere {
  constructor(
    @InjectFlows('second') readonly flows: Flows,
    @InjectJobs('second') readonly jobs: Jobs,
  ) {}
}

describe('flows in an app', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const boot = () => apps.boot({ providers: [PageProcessor, BookProcessor, Library] });

  it('are added by the injected Flows; the handler of the parent reads what its children answered', async () => {
    const app = await boot();
    const library = app.get(Library);
    expect(await library.print('Ulysses', [1, 2])).toBe('Ulysses: page 1, page 2');
    expect(await library.print('Holes', [1, -1, 2])).toBe('Holes: page 1, page 2; 1 missing');
    expect(app.get(getFlowsToken())).toBe(app.get(Flows));
    await expectInvariantsOf(server.client(), ['books', 'pages']);
  });

  it('grow while they run: WaitForChildren goes past the filters, and the handler runs again behind its children', async () => {
    caught.length = 0;
    const app = await boot();
    expect(await app.get(Jobs).enqueueAndWait(Books, 'grow', { pages: 3 })).toBe(3);
    expect(caught).toEqual([]);
    await expectInvariantsOf(server.client(), ['books', 'pages']);
  });

  it('are refused by the schema of any of their queues, which says where in the tree', async () => {
    const app = await boot();
    const children = [flowNode(Pages, 'render', { page: 1 }), flowNode(Pages, 'render', { page: 'x' })];
    const error = await failure(app.get(Flows).add(flowNode(Books, 'bind', { title: 'Bad' }, { children })));
    expect(error).toBeInstanceOf(EchoDataError);
    expect(error.message).toMatch(/^flow\.children\[1]: the data of 'render' for queue 'pages' does not fit/);
  });

  it('belong to the server of their module, by name', async () => {
    const second = EchoMqModule.forRoot({ ...apps.options(), prefix: 'second', name: 'second' });
    const app = await apps.boot({ imports: [second], providers: [PageProcessor, BookProcessor, Library, Elsewhere] });
    const { flows, jobs } = app.get(Elsewhere);
    const { id } = await flows.add(
      flowNode(Books, 'bind', { title: 'Far' }, { children: [flowNode(Pages, 'render', { page: 1 })] }),
    );
    expect(await server.client().exists(`second:{books}:job:${id}`)).toBe(1);
    expect(flows).not.toBe(app.get(Flows));
    const gone = failure(jobs.wait(Books, id));
    await until(async () => (await server.client().hget(`second:{books}:job:${id}`, 'awaited')) === '1', {
      what: 'the wait to begin',
    });
    await jobs.remove(Books, id, { tree: true });
    expect(await gone).toBeInstanceOf(EchoJobError);
  });

  it('go on in the next app where this one was closed in the middle', async () => {
    const first = await apps.boot({ providers: [Library, PageProcessor] });
    const { id } = await first.get(Flows).add(
      flowNode(
        Books,
        'bind',
        { title: 'Later' },
        {
          children: [
            flowNode(Pages, 'render', { page: 1 }, { opts: { delayMs: 50 } }),
            flowNode(Pages, 'render', { page: 2 }),
          ],
          opts: { keepMs: 60_000 },
        },
      ),
    );
    await first.close();
    const second = await boot();
    expect(await second.get(Jobs).wait(Books, id)).toBe('Later: page 1, page 2');
    await expectInvariantsOf(server.client(), ['books', 'pages']);
  });
});
