export { EchoMq } from './engine/echomq.js';
