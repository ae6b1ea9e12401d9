import type { ModulesContainer } from '@nestjs/core';

// Nest gives these no public names, but the types of what its container holds.

/** A module in the container. */
export type HostModule = ModulesContainer extends Map<string, infer M> ? M : never;
/** A provider in the container: what it is made of, and its instances. */
export type ProviderWrapper = HostModule['providers'] extends Map<unknown, infer W> ? W : never;
