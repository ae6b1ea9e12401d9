import { describe, expect, it } from '@jest/globals';
import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { EchoMqModule, Jobs, OnJob, Processor } from 'nestjs-echomq';
import { KINDS } from '../drain/kinds.js';
import { moduleOf, PLACE_NAMES, rootWith } from '../drain/places.js';
import { gate, turns } from '../drain/stage.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';

let reached = gate();
let ready = gate();
let ran = gate();

@Injectable()
class SlowToBoot implements OnApplicationBootstrap {
  isReady = false;

  async onApplicationBootstrap(): Promise<void> {
    reached.open();
    await ready.opened;
    this.isReady = true;
  }
}

@Injectable()
@Processor('early')
class Early {
  constructor(private readonly resource: SlowToBoot) {}

  @OnJob()
  run(): void {
    if (this.resource.isReady) ran.open();
  }
}

describe('no job is claimed before every onApplicationBootstrap is over', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  const cases = PLACE_NAMES.flatMap((place) => Object.keys(BOOTS).map((kind) => [place, kind] as const));

  it.each(cases)('the slow one %s, of %s', async (place, kind) => {
    reached = gate();
    ready = gate();
    ran = gate();
    const producers = moduleOf({ imports: [EchoMqModule.forRoot(server.options({ consume: false }))] });
    const producer = apps.keep(await KINDS['an application context'](producers));
    await producer.get(Jobs).enqueue('early', 'job');
    const root = rootWith(place, [SlowToBoot], Early, EchoMqModule.forRoot(server.options()));
    const booting = BOOTS[kind]!(root);
    await reached.opened;
    await turns();
    expect(await producer.get(Jobs).counts('early')).toMatchObject({ pending: 1, active: 0 });
    ready.open();
    apps.keep(await booting);
    await ran.opened;
  });
});
