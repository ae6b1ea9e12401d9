import { access } from 'node:fs/promises';
import { resolve } from 'node:path';

const ELSEWHERE = /^([a-z][a-z\d+.-]*:|\/|#|$)/i; // https:, mailto:, absolute paths, anchors

/** Those of a document's links that are relative and lead to no file. `folder` is where the document lies. */
export async function missingTargets(links: string[], folder: string): Promise<string[]> {
  const relative = [...new Set(links)].filter((link) => !ELSEWHERE.test(link));
  const found = await Promise.all(relative.map((link) => exists(resolve(folder, pathOf(link)))));
  return relative.filter((_, index) => !found[index]);
}

function pathOf(link: string): string {
  const path = link.replace(/[?#].*$/s, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a lone percent sign: then it is meant as it stands
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
