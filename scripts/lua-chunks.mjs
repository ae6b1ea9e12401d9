// Puts a script together. What scripts share stands in lua/_<part>.lua, as a row of top-level locals; a script gets those it names,
// those that these name, and no others: every function that a script defines is made anew at each call, and costs.
//
// A script that asks for WHOLE has two editions. The plain one knows nothing beyond plain jobs, and answers EMQPLAIN before it has
// written anything when there is more to a call; then the whole one is called.
// In this order: a part stands behind those that it uses.
const LINE_PARTS = ['lane_turns', 'lane_upkeep', 'lanes', 'line'];
const FLOW_PARTS = ['outbox', 'children', 'flow', 'tree_tokens', 'landing'];
const PARTS = ['prelude', 'dedup', 'limits', ...LINE_PARTS, ...FLOW_PARTS];
const PLAIN_PARTS = ['prelude', 'plain'];

/** Comment lines and indentation stay behind: the server keeps every script's text in memory. */
export function slim(text) {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('--'))
    .join('\n');
}

/** What stands between one top-level `local` and the next, with the names it defines. */
function chunksOf(text) {
  const chunks = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('local ')) chunks.push({ names: namesOf(line), lines: [] });
    chunks.at(-1)?.lines.push(line);
  }
  return chunks.map(({ names, lines }) => ({ names, text: slim(lines.join('\n')) }));
}

function namesOf(line) {
  const [, named, listed] = /^local (?:function (\w+)|([\w, ]+))/.exec(line);
  return named ? [named] : listed.split(',').map((name) => name.trim());
}

/** Names, without what stands in strings and behind dots. */
function wordsOf(text) {
  const code = text.replace(/'(?:[^'\\\n]|\\.)*'/g, "''").replace(/--.*$/gm, '');
  return new Set([...code.matchAll(/(?<![\w.:])[A-Za-z_]\w*/g)].map(([word]) => word));
}

/** Whether a script has a plain edition. */
export function hasPlainEdition(script) {
  return wordsOf(script).has('WHOLE');
}

/** The chunks that stand in front of a script, in order. `read` answers a part's text. */
export function chunksFor(script, plain, read) {
  const all = (plain ? PLAIN_PARTS : PARTS).flatMap((part) => chunksOf(read(part)));
  const defined = new Map();
  for (const chunk of all) for (const name of chunk.names) defined.set(name, chunk); // of two, the later
  const needed = new Set();
  const need = (text) => {
    for (const word of wordsOf(text)) {
      const chunk = defined.get(word);
      if (chunk === undefined || needed.has(chunk)) continue;
      needed.add(chunk);
      need(chunk.text);
    }
  };
  need(script);
  return all.filter((chunk) => needed.has(chunk)).map(({ text }) => text);
}
