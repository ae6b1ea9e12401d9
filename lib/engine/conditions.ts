interface Waiter {
  met: () => boolean;
  resolve: () => void;
}

/** Promises of conditions that are looked at again whenever somebody says that something has changed. */
export class Conditions {
  private waiters: Waiter[] = [];

  until(met: () => boolean): Promise<void> {
    if (met()) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiters.push({ met, resolve });
    });
  }

  changed(): void {
    if (this.waiters.length === 0) return;
    const waiting: Waiter[] = [];
    for (const waiter of this.waiters) {
      if (waiter.met()) waiter.resolve();
      else waiting.push(waiter);
    }
    this.waiters = waiting;
  }
}
