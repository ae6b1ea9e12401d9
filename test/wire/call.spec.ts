import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Call } from '../../lib/wire/clients/call.js';
import { spelt } from './spelling.js';

describe('a call', () => {
  it('is bytes to the client library: text that it is not told the encoding of would be sent as something else', () => {
    const args = fc.array(fc.oneof(fc.string({ unit: 'binary', maxLength: 100 }), fc.constant(Buffer.from([0xff]))));
    fc.assert(
      fc.property(args, (given) => {
        const sent = new Call('evalsha', given).toWritable();
        expect(Buffer.isBuffer(sent) && sent.equals(spelt('evalsha', given))).toBe(true);
      }),
    );
  });

  it('names its key, by which a cluster finds the node', () => {
    expect(new Call('evalsha', ['sha', 2, 'emq:{q}:pending', 'emq:{q}:']).getKeys()).toEqual(['emq:{q}:pending']);
    expect(new Call('ZREM', ['emq:{q}:hungry', 'p']).getKeys()).toEqual(['emq:{q}:hungry']);
    expect(new Call('PING', []).getKeys()).toEqual([]);
  });
});
