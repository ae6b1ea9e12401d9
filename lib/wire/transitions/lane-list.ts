import { array, countOf, fromZero, integer, text } from '../reply.js';
import { transition } from '../transition.js';
import { type Row, row } from './row.js';

export interface LaneStanding {
  /** As its rows name it. */
  name: string;
  waiting: number;
  active: number;
  /** Until it can give a job: 0 now; undefined when time does not say. */
  turnInMs: number | undefined;
  /** The fields of its state. */
  state: Row;
}

export interface ListedLanes {
  total: number;
  lanes: LaneStanding[];
}

/** A page of the lanes that are known, or one by its name, or in its place what holds for lanes without settings. */
export const laneList = transition<{ offset: number; limit: number } | { name: string } | 'all', ListedLanes>({
  name: 'lane_list',
  keys: ['lanes', 'base'],
  args: "offset, limit; or '', '' and a name; or these with '' and `all`",
  answers:
    'how many are known, then per lane: name, waiting, active, ms until its turn or -1, flat fields of its state',
  resend: true,
  encode(call) {
    if (call === 'all') return ['', '', '', 'all'];
    return 'name' in call ? ['', '', call.name] : [call.offset, call.limit];
  },
  decode(reply) {
    const [total, ...lanes] = array(reply);
    return {
      total: integer(total),
      lanes: lanes.map((one) => {
        const [name, waiting, active, turn, fields] = array(one);
        const state = row(fields) ?? new Map();
        return {
          ...{ name: text(name), waiting: integer(waiting), active: countOf(active) },
          ...{ turnInMs: fromZero(integer(turn)), state },
        };
      }),
    };
  },
});
