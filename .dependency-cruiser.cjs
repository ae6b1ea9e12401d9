// The floors of the house: imports point down only. `npm run check` says so.
const floors = ['kernel', 'wire', 'engine', 'nest'];

const upward = floors.flatMap((floor, level) => {
  const above = floors.slice(level + 1);
  if (above.length === 0) return [];
  return [
    {
      name: `${floor}-imports-down-only`,
      severity: 'error',
      from: { path: `^lib/${floor}/` },
      to: { path: `^lib/(${above.join('|')})/|^lib/[^/]+\\.ts$` },
    },
  ];
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...upward,
    {
      name: 'client-library-behind-one-file',
      comment: 'The client library is imported by the clients and what makes them, and nowhere else.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/wire/(clients/|client-factory\\.ts)' },
      to: { path: 'node_modules/ioredis' },
    },
    {
      name: 'nest-only-on-its-floor',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/(nest/|index\\.ts|testing\\.ts)' },
      to: { path: 'node_modules/(@nestjs|rxjs|reflect-metadata)' },
    },
    {
      name: 'nest-makes-no-server-call',
      comment: 'The Nest floor reaches the wire through the engine only.',
      severity: 'error',
      from: { path: '^lib/nest/' },
      to: { path: '^lib/wire/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'lib-stands-alone',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(test|bench|sample|scripts)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
