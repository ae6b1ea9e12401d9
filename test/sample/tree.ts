import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Tree {
  readonly root: string;
  /** Writes a file, and the folders it needs. */
  write(file: string, text: string): Promise<void>;
  /** A symbolic link; the target need not exist. */
  link(file: string, target: string): Promise<void>;
  remove(): Promise<void>;
}

/** An empty folder among the temporary files. */
export async function makeTree(): Promise<Tree> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'audit-')));
  const place = async (file: string) => {
    await mkdir(dirname(join(root, file)), { recursive: true });
    return join(root, file);
  };
  return {
    root,
    write: async (file, text) => writeFile(await place(file), text),
    link: async (file, target) => symlink(target, await place(file)),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

export const GUIDE = `# Guide to *everything*

Three plain words, [a link](docs/page.md "title") and ![a picture](gone.png).

\`\`\`js
these words do not count
\`\`\`

## Elsewhere

- [by reference][there], [an anchor](#guide), [the web](https://example.com/x.md), [mail](mailto:a@b.c)
- [with a blank](docs/two%20words.md#part) and [100%](100%.md)

[there]: docs/nowhere.md
`;

/** What an audit must find in {@link GUIDE}, when the two files in docs/ exist. */
export const GUIDE_FACTS = { words: 24, headings: 2, links: 8, broken: ['gone.png', 'docs/nowhere.md', '100%.md'] };

/** The guide, the pages it leads to, a folder that is called like a document, and what cannot be read. */
export async function fill(tree: Tree): Promise<void> {
  await tree.write('guide.md', GUIDE);
  await tree.write('docs/page.md', 'one two');
  await tree.write('docs/two words.md', '# Deep\n\n[up](../guide.md)');
  await tree.write('folder.md/inner.MD', 'inside');
  await tree.write('notes.txt', 'not Markdown');
  await tree.link('ghost.md', 'nowhere-at-all');
  await tree.link('folder-link.md', 'docs');
}
