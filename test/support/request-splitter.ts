/**
 * Cuts what a client sends into whole commands, so that the proxy can act between two commands and never inside one. Clients send
 * arrays of bulk strings; a line that is none of those counts as a command too.
 */
export class RequestSplitter {
  private unread: Buffer = Buffer.alloc(0);
  /** Came behind it, and is put to it when there are so many bytes in all that it helps. */
  private readonly more: Buffer[] = [];
  private wanted = 0;
  private size = 0;

  /** Takes the next bytes, and answers the commands that are complete now; the rest is kept. */
  push(bytes: Buffer): Buffer[] {
    this.more.push(bytes);
    this.size += bytes.length;
    if (this.size < this.wanted) return [];
    this.unread = Buffer.concat([this.unread, ...this.more.splice(0)]);
    const commands: Buffer[] = [];
    for (let end = this.endOfFirst(); end !== undefined; end = this.endOfFirst()) {
      commands.push(this.unread.subarray(0, end));
      this.unread = this.unread.subarray(end);
    }
    this.size = this.unread.length;
    return commands;
  }

  private endOfFirst(): number | undefined {
    this.wanted = 0;
    const head = this.lineAt(0);
    if (!head?.text.startsWith('*')) return head?.end;
    let end = head.end;
    for (let left = Number(head.text.slice(1)); left > 0; left--) {
      const length = this.lineAt(end);
      if (!length) return undefined;
      end = length.end + Number(length.text.slice(1)) + 2;
      this.wanted = end;
    }
    return end <= this.unread.length ? end : undefined;
  }

  private lineAt(start: number): { text: string; end: number } | undefined {
    const eol = this.unread.indexOf('\r\n', start);
    return eol < 0 ? undefined : { text: this.unread.toString('latin1', start, eol), end: eol + 2 };
  }
}
