/** The only way in which a test waits; one implementation serves the starters of servers too. */
export { type UntilOptions, until } from '../../scripts/server/until.js';
