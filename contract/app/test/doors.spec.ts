import { describe, expect, it } from '@jest/globals';
import * as nest from 'nestjs-echomq';
import * as core from 'nestjs-echomq/core';
import * as testing from 'nestjs-echomq/testing';

describe('the doors of the package', () => {
  it('share their classes', () => {
    expect(nest.EchoMq).toBe(core.EchoMq);
    expect(nest.Discard).toBe(core.Discard);
    expect(testing).toBeDefined();
  });
});
