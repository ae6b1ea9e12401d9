import { beforeEach, describe, expect, it } from '@jest/globals';
import { readId } from '../../lib/kernel/id.js';
import { Mint, type NodeLease } from '../../lib/kernel/mint.js';
import { FakeClock } from './fake-clock.js';

const HOUR = 3_600_000;
const SERVER = Date.UTC(2026, 5, 1, 12);
const TTL = 30_000;

describe('a mint', () => {
  let clock: FakeClock;
  let mint: Mint;
  beforeEach(() => {
    clock = new FakeClock(SERVER);
    mint = new Mint(clock);
  });

  /** A lease that the server gave at this moment; its clock is the one that counts. */
  const lease = (changed: Partial<NodeLease> = {}, at = clock, serverMs = SERVER): NodeLease => ({
    node: 7,
    floorMs: serverMs - 1,
    expiryMs: serverMs + TTL,
    serverMs,
    askedWall: at.wall(),
    askedMonotonic: at.monotonic(),
    ...changed,
  });
  const mintedMs = () => {
    const minted = mint.mint();
    return minted === undefined ? undefined : readId(minted).mintedAt.getTime();
  };

  it('mints nothing without a lease, nor after it was dropped', () => {
    expect(mint.mint()).toBeUndefined();
    mint.adopt(lease());
    expect(mint.mint()).toBeDefined();
    expect(mint.node).toBe(7);
    mint.drop();
    expect(mint.mint()).toBeUndefined();
    expect(mint.node).toBeUndefined();
  });

  it('mints on its node, at the time of the server', () => {
    clock.wallMs += HOUR;
    mint.adopt(lease());
    clock.pass(250);
    expect(readId(mint.mint()!)).toEqual({ mintedAt: new Date(SERVER + 250), node: 7, sequence: 0 });
    expect(mint.lastMintedMs).toBe(SERVER + 250);
  });

  it('mints strictly above the floor', () => {
    mint.adopt(lease({ floorMs: SERVER + 5 }));
    expect(mintedMs()).toBe(SERVER + 6);
    clock.pass(5);
    expect(mintedMs()).toBe(SERVER + 6);
    clock.pass(2);
    expect(mintedMs()).toBe(SERVER + 7);
  });

  it('mints up to a second before the lease is over', () => {
    mint.adopt(lease());
    clock.pass(TTL - 1_001);
    expect(mintedMs()).toBe(SERVER + TTL - 1_001);
    clock.pass(1);
    expect(mint.mint()).toBeUndefined();
  });

  it('stops by the monotonic clock when the wall clock was set back', () => {
    mint.adopt(lease());
    clock.monotonicMs += TTL - 1_000;
    clock.wallMs -= HOUR;
    expect(mint.mint()).toBeUndefined();
  });

  it('stops by the wall clock when the machine was suspended and the other stood still', () => {
    mint.adopt(lease());
    clock.wallMs += TTL - 1_000;
    expect(mint.mint()).toBeUndefined();
  });

  it('goes on in order when the wall clock is set back', () => {
    mint.adopt(lease());
    clock.pass(10);
    const first = mint.mint()!;
    clock.wallMs -= HOUR;
    clock.monotonicMs += 1;
    const second = mint.mint()!;
    expect(second > first).toBe(true);
    expect(readId(second).mintedAt.getTime()).toBe(SERVER + 11);
  });

  it('never mints backwards when the clock of the server is', () => {
    mint.adopt(lease());
    clock.pass(5_000);
    const first = mint.mint()!;
    mint.adopt(lease({ serverMs: SERVER + 1_000 }));
    const second = mint.mint()!;
    expect(second > first).toBe(true);
  });

  it('goes on with the lease renewed, without a floor, in the sequence it is in', () => {
    mint.adopt(lease());
    const first = mint.mint()!;
    mint.adopt(lease({ floorMs: 0 }));
    expect(readId(mint.mint()!)).toEqual({ ...readId(first), sequence: 1 });
    clock.pass(TTL);
    expect(mint.mint()).toBeUndefined();
    mint.adopt(lease({ floorMs: 0 }, clock, SERVER + TTL));
    expect(mintedMs()).toBe(SERVER + TTL);
  });

  it('borrows from the milliseconds to come when 10,000 are minted in one', () => {
    mint.adopt(lease());
    const ids = Array.from({ length: 10_000 }, () => mint.mint()!);
    expect(new Set(ids).size).toBe(10_000);
    expect([...ids].sort()).toEqual(ids);
    expect(mint.lastMintedMs).toBe(SERVER + Math.floor(9_999 / 1024));
    clock.pass(3);
    expect(mint.mint()! > ids.at(-1)!).toBe(true);
    expect(mint.lastMintedMs).toBe(SERVER + Math.floor(10_000 / 1024));
  });

  it('does not borrow beyond its lease', () => {
    mint.adopt(lease());
    clock.pass(TTL - 1_002);
    const ids = Array.from({ length: 3_000 }, () => mint.mint());
    expect(ids.filter((minted) => minted !== undefined)).toHaveLength(2 * 1024);
    expect(mint.lastMintedMs).toBe(SERVER + TTL - 1_001);
  });

  it('starts a new node above its floor, and in a millisecond of its own', () => {
    mint.adopt(lease());
    const before = Array.from({ length: 1_500 }, () => mint.mint()!);
    mint.adopt(lease({ node: 8, floorMs: SERVER + 40 }));
    expect(readId(mint.mint()!)).toEqual({ mintedAt: new Date(SERVER + 41), node: 8, sequence: 0 });

    mint.adopt(lease({ node: 6 }));
    const next = mint.mint()!;
    expect(next > before.at(-1)!).toBe(true);
    expect(readId(next)).toEqual({ mintedAt: new Date(SERVER + 42), node: 6, sequence: 0 });
  });

  it('goes on from the server’s time on a new node, when its clock has gone back by more than the lease', () => {
    mint.adopt(lease());
    mint.mint();
    const back = SERVER - TTL;
    expect(mint.fits(lease({ floorMs: 0 }, clock, back))).toBe(false);
    mint.adopt(lease({ floorMs: 0 }, clock, back));
    expect(mint.mint()).toBeUndefined();
    mint.adopt(lease({ node: 8 }, clock, back));
    expect(readId(mint.mint()!)).toEqual({ mintedAt: new Date(back), node: 8, sequence: 0 });
  });

  it('goes on in order, on whatever node, when that clock has gone back by less', () => {
    mint.adopt(lease());
    const first = mint.mint()!;
    const back = SERVER - TTL + 2_000;
    expect(mint.fits(lease({ floorMs: 0 }, clock, back))).toBe(true);
    mint.adopt(lease({ node: 6 }, clock, back));
    expect(mint.mint()! > first).toBe(true);
  });

  it('starts the same number anew, when it was lost in between', () => {
    mint.adopt(lease());
    const first = mint.mint()!;
    mint.drop();
    mint.adopt(lease());
    const second = mint.mint()!;
    expect(readId(second)).toEqual({ mintedAt: new Date(SERVER + 1), node: 7, sequence: 0 });
    expect(second > first).toBe(true);
  });

  it('agrees with another whose clock is two hours off: unique ids, ordered by the server', () => {
    const clocks = [new FakeClock(SERVER + HOUR, 17.25), new FakeClock(SERVER - HOUR, 9e9)];
    const mints = clocks.map((at, n) => {
      const one = new Mint(at);
      one.adopt(lease({ node: n }, at));
      return one;
    });
    const rounds = Array.from({ length: 5 }, () => {
      const ids = mints.flatMap((one) => Array.from({ length: 10_000 }, () => one.mint()!));
      for (const at of clocks) at.pass(10);
      return ids;
    });
    const all = rounds.flat();
    expect(new Set(all).size).toBe(100_000);
    const [last, first] = [rounds[0]!.sort().at(-1)!, rounds[1]!.sort()[0]!];
    expect(first > last).toBe(true);
    expect(readId(all[0]!).mintedAt.getTime()).toBe(SERVER);
  });
});
