import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';

export interface Arguments {
  dir: string;
  serve: boolean;
  port: number;
}

/** Ends the process for `--help` and for arguments that make no sense. */
export function readArguments(argv: string[]): Arguments {
  const command = new Command('npm run sample --')
    .description(
      'Audits every Markdown file of a tree by way of a job queue: words, headings, links that lead nowhere.',
    )
    .argument('[dir]', 'the tree (default: node_modules, which has over a thousand)')
    .option('--serve', 'listen for POST /audits instead of auditing once', false)
    .option('--port <number>', 'the port to listen on', port, 3000)
    .parse(argv);
  const { serve, port: chosen } = command.opts<{ serve: boolean; port: number }>();
  const [dir] = command.args;
  // npm runs scripts in the package's folder; INIT_CWD is where the user is.
  const given = dir === undefined ? undefined : resolve(process.env.INIT_CWD ?? '', dir);
  return { dir: given ?? resolve('node_modules'), serve, port: chosen };
}

function port(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= 65_535) return value;
  throw new InvalidArgumentError('a port is a number from 0 to 65535.');
}
