export { findBinary } from './binary.js';
export { type ClusterSet, startCluster } from './cluster.js';
export { DEFAULT_IMAGE, type ServerContainer, startContainer } from './container.js';
export { askDockerEngine, type EngineAnswer } from './docker-engine.js';
export { findServer, type ServerHandle } from './find-server.js';
export { RedisProcess, type RedisProcessOptions } from './redis-process.js';
export { startReplica } from './replica.js';
export { type SentinelOptions, type SentinelSet, startSentinel } from './sentinel.js';
export { type UntilOptions, until } from './until.js';
