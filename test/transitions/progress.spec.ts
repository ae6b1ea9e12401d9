import { fields, job } from './changes.js';
import { id } from './hand.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';

const [A, B] = [id(1), id(2)];

describeTransition('progress', (table) => {
  for (const { held, epoch, token } of HOLDERS) {
    table.it(`keeps what the holder of a claim made ${held} says`, {
      given: (queue) => queue.active(A, { lease_epoch: epoch, progress: '10' }),
      call: [A, token, '50'],
      answer: [1],
      changes: { [job(A)]: fields({ progress: '50' }) },
    });
    table.it(`keeps it also after the lease of a claim made ${held} has lapsed, until another claims the job`, {
      given: (queue) => queue.lapsed(A, { lease_epoch: epoch }),
      call: [A, token, '50'],
      answer: [1],
      changes: { [job(A)]: fields({ progress: '50' }) },
    });
  }

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`is told nothing by ${held}`, {
      given: (queue) => queue.active(A, { lease_epoch: epoch }),
      call: [A, token, '50'],
      answer: [-1],
    });
  }
  for (const [title, given] of ENDED) {
    table.it(`is told nothing of a job that ${title}`, {
      given: (queue) => given(queue, A),
      call: [A, 1, '50'],
      answer: [-1],
    });
  }

  table.it('keeps the latest of several, whatever they hold, and minds no job that is gone', {
    given: (queue) => queue.active(A),
    call: [A, 1, '1', B, 1, '2', A, 1, 'a\nb {"x": 1}', A, 9, '4', A, 1, ''],
    answer: [1, 0, 1, -1, 1],
    changes: { [job(A)]: fields({ progress: '' }) },
  });

  table.it('minds no key of another type', {
    given: (queue) => queue.client.set(queue.keys.row(A), 'x'),
    call: [A, 1, '50'],
    answer: [0],
    reachable: false,
  });

  table.refuses('refuses what does not add up', (queue) => queue.active(A), [[], [A], [A, 1], [A, 1, '5', B]]);
});
