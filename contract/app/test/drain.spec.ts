import { describe, expect, it } from '@jest/globals';
import { EchoMqModule, Jobs } from 'nestjs-echomq';
import { DATABASES } from '../drain/databases.js';
import { PLACE_NAMES, rootWith } from '../drain/places.js';
import { GOOD_END, Queries } from '../drain/queries.js';
import { stage, turns } from '../drain/stage.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';

describe('databases are open while handlers drain, whichever shutdown hook closes them (C056)', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  const cases = PLACE_NAMES.flatMap((place) => Object.keys(BOOTS).map((kind) => [place, kind] as const));

  it.each(cases)('%s, app.close() of %s', async (place, kind) => {
    stage.clear();
    const echo = EchoMqModule.forRoot(server.options());
    const app = apps.keep(await BOOTS[kind]!(rootWith(place, DATABASES, Queries, echo)));
    await app.get(Jobs).enqueue('queries', 'query');
    await stage.handlerRuns.opened;
    const closing = apps.close(app);
    // Hooks that do not wait for the handler are long through by then.
    await turns();
    expect(stage.lines).toEqual([]);
    stage.handlerMayEnd.open();
    await closing;
    expect(stage.lines).toEqual(GOOD_END);
    expect(await server.client.keys(`${server.prefix}:{queries}:active`)).toEqual([]);
  });
});
