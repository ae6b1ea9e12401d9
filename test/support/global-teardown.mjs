/** Stops what the global setup started for all spec files. */
export default async function teardown() {
  await globalThis.stopSharedServer?.();
}
