import { fields, job } from './changes.js';
import { waiting } from './family.js';
import { FAR, type Hand, id } from './hand.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const AWAITED = fields({ awaited: '1' });

describeTransition('watch', (table) => {
  const alive: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['pending', (queue) => queue.pending(A)],
    ['active', (queue) => queue.active(A)],
    ['scheduled', (queue) => queue.scheduled(A)],
    ['awaiting_children', (queue) => waiting(queue, A, { children: [B] })],
  ];
  for (const [state, given] of alive) {
    table.it(`says that a job is ${state}, and from now on its end is told`, {
      given,
      call: [A],
      answer: [state],
      changes: { [job(A)]: AWAITED },
    });
  }

  const ended: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['dead', (queue) => queue.dead(A)],
    ['done', (queue) => queue.done(A)],
  ];
  for (const [state, given] of ended) {
    table.it(`says that a job is ${state}, and changes nothing`, { given, call: [A], answer: [state] });
  }

  table.it('says nothing of a job that is gone, or of a key of another type', {
    given: async (queue) => {
      await queue.ghost('schedule', A, FAR);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [A, B, ''],
    answer: ['', '', ''],
    reachable: false,
  });

  table.it('watches several, and one that is watched already', {
    given: async (queue) => {
      await queue.pending(A, { awaited: 1 });
      await queue.dead(B);
      await queue.active(C);
    },
    call: [A, B, C, A],
    answer: ['pending', 'dead', 'active', 'pending'],
    changes: { [job(C)]: AWAITED },
  });

  table.refuses('refuses to watch nothing', () => table.queue.pending(A), [[]]);
});
