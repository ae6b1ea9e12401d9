import { type DynamicModule, Module, type ModuleMetadata, type Type } from '@nestjs/common';

/** The metadata of a root module in which the resources stand somewhere, and somebody who injects them. */
type Place = (resources: Type[], user: Type, echo: DynamicModule) => ModuleMetadata;

/** Where in an app a provider with hooks may stand, as seen from the processor that injects it and from our module. */
export const PLACES = {
  "in the processor's module": (resources, user, echo) => ({
    imports: [echo, moduleOf({ providers: [...resources, user] })],
  }),
  'in a module that it imports': (resources, user, echo) => ({
    imports: [echo, moduleOf({ imports: [exporting(resources)], providers: [user] })],
  }),
  'three modules deep': (resources, user, echo) => ({
    imports: [echo, moduleOf({ imports: [wrapped(wrapped(exporting(resources)))], providers: [user] })],
  }),
  'in the root module': (resources, user, echo) => ({ imports: [echo], providers: [...resources, user] }),
  'in the root module, ours three deep': (resources, user, echo) => ({
    imports: [moduleOf({ imports: [moduleOf({ imports: [echo] })] })],
    providers: [...resources, user],
  }),
  'in a global module': (resources, user, echo) => ({
    imports: [
      echo,
      { module: moduleOf({}), global: true, providers: resources, exports: resources },
      moduleOf({ providers: [user] }),
    ],
  }),
  'in a module imported before ours': (resources, user, echo) => {
    const before = exporting(resources);
    return { imports: [before, moduleOf({ imports: [before], providers: [user] }), echo] };
  },
  'in a module imported after ours': (resources, user, echo) => {
    const after = exporting(resources);
    return { imports: [moduleOf({ imports: [after], providers: [user] }), echo, after] };
  },
  'in a module that imports ours': (resources, user, echo) => ({
    imports: [moduleOf({ imports: [exporting(resources, [echo])], providers: [user] })],
  }),
  'as the class of a module': (resources, user, echo) => {
    const modules = resources.map((resource) => ({ module: resource, exports: [resource] }));
    return { imports: [echo, moduleOf({ imports: modules, providers: [user] })] };
  },
} satisfies Record<string, Place>;

export type PlaceName = keyof typeof PLACES;
export const PLACE_NAMES = Object.keys(PLACES) as PlaceName[];

/** A root module with the resources in that place. */
export function rootWith(place: PlaceName, resources: Type[], user: Type, echo: DynamicModule): Type {
  return moduleOf(PLACES[place](resources, user, echo));
}

/** A module class of its own with this metadata. */
export function moduleOf(metadata: ModuleMetadata): Type {
  class SomeModule {}
  Module(metadata)(SomeModule);
  return SomeModule;
}

function exporting(providers: Type[], imports: DynamicModule[] = []): Type {
  return moduleOf({ providers, exports: providers, imports });
}

function wrapped(module: Type): Type {
  return moduleOf({ imports: [module], exports: [module] });
}
