/** Loads one adapter, and with it only the library that is measured. */

import type { Adapter, LibraryName } from './adapter.js';

export async function loadAdapter(name: LibraryName): Promise<Adapter> {
  switch (name) {
    case 'echomq':
      return (await import('./echomq.js')).echomq;
    case 'bullmq':
      return (await import('./bullmq.js')).bullmq;
    case 'bee-queue':
      return (await import('./bee-queue.js')).beeQueue;
  }
}
