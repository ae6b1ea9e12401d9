import { fields, job } from './changes.js';
import { waiting } from './family.js';
import { type Hand, id } from './hand.js';
import { describeTransition } from './state-table.js';

const [A, B] = [id(1), id(2)];

describeTransition('rewrite', (table) => {
  const resting: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['pending', (queue) => queue.pending(A)],
    ['lapsed', (queue) => queue.lapsed(A)],
    ['scheduled', (queue) => queue.scheduled(A)],
    ['dead', (queue) => queue.dead(A)],
    ['waiting', (queue) => waiting(queue, A, { children: [`r|${B}`] })],
  ];
  for (const [state, given] of resting) {
    table.it(`gives a ${state} job another payload, and changes nothing else`, {
      given,
      call: [A, 'p', 'another'],
      answer: [1],
      changes: { [job(A)]: fields({ payload: 'another' }) },
    });
  }

  table.it('leaves a payload that is not the one that was read', {
    given: (queue) => queue.pending(A, { payload: 'theirs' }),
    call: [A, 'p', 'ours', A, 'their', 'ours', A, 'theirs ', 'ours', A, '', 'ours'],
    answer: [-1, -1, -1, -1],
  });

  table.it('compares bytes, and writes the bytes it was given', {
    given: (queue) =>
      queue.client.hset(queue.keys.row(A), { state: 'pending', attempts: 0, payload: Buffer.from([0, 255]) }),
    call: [A, Buffer.from([0, 254]), 'wrong', A, Buffer.from([0, 255]), Buffer.from([255, 0])],
    answer: [-1, 1],
    changes: { [job(A)]: fields({ payload: `base64!${Buffer.from([255, 0]).toString('base64')}` }) },
    reachable: false,
  });

  table.it('lets later jobs of a call see earlier ones', {
    given: (queue) => queue.pending(A),
    call: [A, 'p', 'first', A, 'p', 'lost', A, 'first', 'second'],
    answer: [1, -1, 1],
    changes: { [job(A)]: fields({ payload: 'second' }) },
  });

  table.it('leaves an active job as it is: its handler has the data already', {
    given: (queue) => queue.active(A),
    call: [A, 'p', 'another'],
    answer: [-2],
  });

  table.it('leaves a done job as it is', { given: (queue) => queue.done(A), call: [A, 'p', 'q'], answer: [-2] });

  table.it('answers gone where there is no row, or a key of another type, and changes the rest', {
    given: async (queue) => {
      await queue.client.set(queue.keys.row(B), 'x');
      await queue.pending(A);
    },
    call: [id(9), 'p', 'q', B, 'p', 'q', A, 'p', 'q'],
    answer: [0, 0, 1],
    changes: { [job(A)]: fields({ payload: 'q' }) },
    reachable: false,
  });

  const given = () => table.queue.pending(A);
  table.refuses('refuses calls that do not add up', given, [
    [],
    [A],
    [A, 'p'],
    [A, 'p', 'q', A],
    [A, 'p', 'q', A, 'q'],
  ]);
});
