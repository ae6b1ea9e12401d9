import { describe, expect, it } from '@jest/globals';
import { Controller, forwardRef, Inject, Injectable } from '@nestjs/common';
import { Consumers, EchoRegistrationError, type Job, Jobs, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { type Apps, failure, moduleOf, useApps } from './apps.js';

/** What ran, as `who: name`. */
let ran: string[] = [];

@Processor('made')
class Made {
  constructor(readonly from: string) {}

  @OnJob()
  run({ name }: Job): void {
    ran.push(`${this.from}: ${name}`);
  }
}

@Processor('made')
class InjectedMade extends Made {
  constructor(@Inject('from') from: string) {
    super(from);
  }
}

@Processor('farm')
class Chicken {
  constructor(@Inject(forwardRef(() => Egg)) readonly egg: unknown) {}

  @OnJob('hatch')
  hatch(): void {
    const { egg } = this;
    if (egg instanceof Egg && egg.chicken === this) ran.push('a chicken knows its egg, and the egg its chicken');
  }
}

@Injectable()
class Egg {
  constructor(@Inject(forwardRef(() => Chicken)) readonly chicken: unknown) {}
}

async function runOne(
  apps: Apps,
  providers: NonNullable<Parameters<typeof moduleOf>[0]['providers']>,
  queue: string,
  name = 'x',
) {
  ran = [];
  const app = await apps.boot({ providers });
  await app.get(Jobs).enqueue(queue, name);
  await until(() => ran.length > 0, { what: `a job of ${queue} to run` });
  await app.close();
  return ran;
}

describe('a processor is found', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('when a factory makes it, and when an asynchronous one does', async () => {
    expect(await runOne(apps, [{ provide: 'p', useFactory: () => new Made('factory') }], 'made')).toEqual([
      'factory: x',
    ]);
    const later = { provide: 'p', useFactory: async () => new Made('promise') };
    expect(await runOne(apps, [later], 'made')).toEqual(['promise: x']);
  });

  it('when it is a value', async () => {
    expect(await runOne(apps, [{ provide: 'p', useValue: new Made('value') }], 'made')).toEqual(['value: x']);
  });

  it('when it stands under another token, and once when an alias leads to it', async () => {
    const providers = [
      { provide: 'p', useFactory: () => new Made('itself') },
      { provide: 'q', useExisting: 'p' },
      { provide: Made, useExisting: 'q' },
    ];
    expect(await runOne(apps, providers, 'made')).toEqual(['itself: x']);
  });

  it('when it stands for another token', async () => {
    expect(
      await runOne(
        apps,
        [
          { provide: 'from', useValue: 'here' },
          { provide: 'p', useClass: InjectedMade },
        ],
        'made',
      ),
    ).toEqual(['here: x']);
  });

  it('when it and what it injects need each other', async () => {
    const app = await apps.boot({ providers: [Chicken, Egg] });
    ran = [];
    await app.get(Jobs).enqueue('farm', 'hatch');
    await until(() => ran.length > 0, { what: 'the job' });
    expect(ran).toEqual(['a chicken knows its egg, and the egg its chicken']);
  });

  it('when a module class is one', async () => {
    @Processor('module')
    class ProcessingModule {
      @OnJob('x')
      run(): void {
        ran.push('module');
      }
    }
    ran = [];
    const app = await apps.boot({ imports: [{ module: ProcessingModule }] });
    await app.get(Jobs).enqueue('module', 'x');
    await until(() => ran.length > 0, { what: 'the job' });
  });

  it('with the handlers it inherits, which see its own methods; what is not marked is never called (C164)', async () => {
    abstract class Base {
      constructor(private readonly title: string) {}

      @OnJob('import')
      import(): void {
        ran.push(`import ${this.what()}`);
      }

      @OnJob('report')
      report(): void {
        ran.push(`report ${this.title}`);
      }

      helper(): void {
        ran.push('helper');
      }

      protected abstract what(): string;
    }
    @Processor('cats')
    class Cats extends Base {
      constructor() {
        super('cats');
      }
      what = () => 'cats';
    }
    @Processor('dogs')
    class Dogs extends Base {
      constructor() {
        super('dogs');
      }
      protected what(): string {
        return 'dogs';
      }

      @OnJob('report')
      override report(): void {
        ran.push('dogs report themselves');
      }
    }
    ran = [];
    const app = await apps.boot({ providers: [Cats, Dogs] });
    const jobs = app.get(Jobs);
    for (const queue of ['cats', 'dogs']) {
      await jobs.enqueueMany(
        queue,
        ['import', 'helper', 'what', 'report'].map((name) => ({ name })),
      );
    }
    await until(() => ran.length === 4, { what: 'two jobs of each' });
    expect(ran.filter((line) => line.includes('cats'))).toEqual(['import cats', 'report cats']);
    expect(ran.filter((line) => line.includes('dogs'))).toEqual(['import dogs', 'dogs report themselves']);
    await until(async () => (await jobs.counts('dogs')).scheduled === 2, { what: 'the unmarked names to be put back' });
    expect(apps.log.warn.filter((line) => line.includes("queue 'cats'"))).toHaveLength(2);
  });

  it('and stays apart from the others, whatever order their factories finish in (C160)', async () => {
    const queues = ['a', 'b', 'c', 'd', 'e'];
    const classes = queues.map((queue) => {
      @Processor(queue)
      class Own {
        @OnJob()
        run(job: Job): void {
          ran.push(`${queue} ran a job of ${job.queue}`);
        }
      }
      return Own;
    });
    const soon = async (): Promise<void> => {
      for (let turn = Math.random() * 10; turn > 0; turn--) await new Promise((next) => setImmediate(next));
    };
    for (let boot = 0; boot < 50; boot++) {
      ran = [];
      const modules = classes.map((Own, i) =>
        moduleOf({ providers: [{ provide: `p${i}`, useFactory: () => soon().then(() => new Own()) }] }),
      );
      const app = await apps.boot({ imports: modules });
      await Promise.all(queues.map((queue) => app.get(Jobs).enqueue(queue, 'x')));
      await until(() => ran.length === queues.length, { what: 'a job of each queue' });
      expect([...ran].sort()).toEqual(queues.map((queue) => `${queue} ran a job of ${queue}`));
      await app.close();
    }
  });
});

describe('a processor that several modules provide', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const feature = (from: string) => moduleOf({ providers: [Made, { provide: String, useValue: from }] }, 'Feature');

  it('runs each job once, and always on the instance of the module that comes first (C158)', async () => {
    const served: string[] = [];
    for (let boot = 0; boot < 20; boot++) {
      const names = boot % 2 === 0 ? ['first', 'second', 'third'] : ['third', 'second', 'first'];
      const app = await apps.boot({ imports: names.map(feature) });
      ran = [];
      await app.get(Jobs).enqueueMany(
        'made',
        Array.from({ length: 5 }, () => ({ name: 'x' })),
      );
      await until(async () => (await app.get(Jobs).counts('made')).metrics.completed === 5 * (boot + 1), {
        what: 'the jobs',
      });
      expect(ran).toEqual(Array.from({ length: 5 }, () => `${names[0]}: x`));
      expect(app.get(Consumers).queues).toEqual(['made']);
      served.push(...ran);
      await app.close();
    }
    expect(served).toHaveLength(100);
  });

  it('as one dynamic module does that is imported twice, the same and with other options, runs each job once (C158)', async () => {
    class Shared {}
    const shared = (from: string) => ({ module: Shared, providers: [Made, { provide: String, useValue: from }] });
    const same = shared('same');
    const other = moduleOf({ imports: [same, shared('other')] });
    const app = await apps.boot({ imports: [same, other, shared('same')] });
    ran = [];
    await app.get(Jobs).enqueueMany(
      'made',
      Array.from({ length: 20 }, () => ({ name: 'x' })),
    );
    await until(async () => (await app.get(Jobs).counts('made')).metrics.completed === 20, { what: 'the jobs' });
    expect(ran).toEqual(Array.from({ length: 20 }, () => 'same: x'));
  });
});

describe('the boot fails, naming both places,', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  // No server answers there: what is wrong is told before one is needed.
  const refused = async (...providers: NonNullable<Parameters<typeof moduleOf>[0]['providers']>) => {
    const feature = moduleOf({ providers }, 'FeatureModule');
    const error = await failure(apps.boot({ imports: [feature] }, { connection: { host: '127.0.0.1', port: 1 } }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    return error.message;
  };

  @Processor('mail')
  class First {
    @OnJob('welcome')
    one(): void {}
  }

  it('when two classes handle one name', async () => {
    @Processor('mail')
    class Second {
      @OnJob('welcome')
      two(): void {}
    }
    expect(await refused(First, Second)).toBe(
      "queue 'mail': 'welcome' is handled by First.one in FeatureModule and by Second.two in FeatureModule. " +
        'A job runs once: remove one of them',
    );
  });

  it('when two methods of one class do', async () => {
    @Processor('mail')
    class Both {
      @OnJob('welcome')
      one(): void {}
      @OnJob('welcome')
      two(): void {}
    }
    expect(await refused(Both)).toMatch(/Both\.one .* and by Both\.two/);
  });

  it('when two methods want every other name', async () => {
    @Processor('mail')
    class Rest {
      @OnJob()
      rest(): void {}
    }
    @Processor('mail')
    class Others {
      @OnJob()
      others(): void {}
    }
    expect(await refused(Rest, Others)).toMatch(/every other job is handled by Rest\.rest .* and by Others\.others/);
  });

  it('when a processor handles nothing', async () => {
    @Processor('mail')
    class Idle {
      run(): void {}
    }
    expect(await refused(Idle)).toContain("Idle in FeatureModule is @Processor('mail') but handles nothing");
  });

  it('when a class has handlers and no queue', async () => {
    @Injectable()
    class Homeless {
      @OnJob('x')
      run(): void {}
    }
    expect(await refused(Homeless)).toBe("Homeless in FeatureModule has @OnJob methods: put @Processor('queue') on it");
  });

  it('when a subclass of a processor is not marked itself', async () => {
    class Sub extends First {}
    expect(await refused(Sub)).toContain('Sub in FeatureModule extends the processor First, but a decorator is not');
  });

  it('when a method overrides a handler without saying what it handles', async () => {
    @Processor('other')
    class Sub extends First {
      override one(): void {}
    }
    expect(await refused(Sub)).toBe(
      "Sub.one overrides First.one, which is @OnJob('welcome'), without a decorator of its own: " +
        "repeat @OnJob('welcome') on it, or give it another name",
    );
  });

  it('when a controller handles jobs: Nest makes those for requests', async () => {
    @Controller()
    @Processor('mail')
    class Web {
      @OnJob('x')
      run(): void {}
    }
    const error = await failure(apps.boot({ controllers: [Web] }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    expect(error.message).toContain('Web is a controller of RootModule');
  });

  it('when somebody listens to a queue that nobody serves', async () => {
    @Injectable()
    class Listener {
      constructor(consumers: Consumers) {
        consumers.on('male', 'failed', () => {});
      }
    }
    expect(await refused(First, Listener)).toContain("consumers.on('male', ...)");
  });

  it('for a queue whose name cannot be one', async () => {
    @Processor('a{b}')
    class Braces {
      @OnJob()
      run(): void {}
    }
    const error = await failure(apps.boot({ providers: [Braces] }));
    expect(error.message).toContain('@Processor on Braces in RootModule: queue name "a{b}" holds a brace');
  });
});

describe('a decorator refuses at once', () => {
  it('a second queue for a class', () => {
    class Two {}
    Processor('a')(Two);
    expect(() => Processor('b')(Two)).toThrow('Two has two @Processor decorators');
  });

  it('static methods, properties and names that are none', () => {
    class Some {
      static fixed(): void {}
      run(): void {}
    }
    const fixed = Object.getOwnPropertyDescriptor(Some, 'fixed')!;
    const run = Object.getOwnPropertyDescriptor(Some.prototype, 'run')!;
    expect(() => OnJob('x')(Some, 'fixed', fixed)).toThrow('Some.fixed: a static method');
    expect(() => OnJob('x')(Some.prototype, 'field', undefined as unknown as typeof run)).toThrow('it is no method');
    expect(() => OnJob('')(Some.prototype, 'run', run)).toThrow('@OnJob()');
  });
});
