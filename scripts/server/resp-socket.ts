import { connect, type Socket } from 'node:net';

/** A decoded answer: errors inside arrays stay values, an error on its own rejects. */
export type Reply = string | number | null | Error | Reply[];

interface Waiting {
  resolve(reply: Reply): void;
  reject(reason: Error): void;
}

/**
 * One plain connection that speaks just enough RESP2 to set up and ask a server: no reconnects, no queue, no options.
 * The starters use this rather than the client library, so that the bench and the sample can start servers without it.
 */
export class RespSocket {
  private readonly waiting: Waiting[] = [];
  private unread: Buffer = Buffer.alloc(0);

  private constructor(private readonly socket: Socket) {
    socket.on('data', (bytes) => this.read(bytes));
    socket.on('error', (error) => this.fail(error));
    socket.on('close', () => this.fail(new Error('the server closed the connection')));
  }

  /** Connects, or rejects with the socket's error (`ECONNREFUSED`, ...). */
  static open(host: string, port: number): Promise<RespSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new RespSocket(socket));
      });
    });
  }

  /** Opens a connection, runs `use`, closes it whatever happens. */
  static async with<T>(host: string, port: number, use: (server: RespSocket) => Promise<T>): Promise<T> {
    const server = await RespSocket.open(host, port);
    try {
      return await use(server);
    } finally {
      server.close();
    }
  }

  /** Sends one command. Rejects on an error reply and when the connection ends first. */
  command(...args: (string | number)[]): Promise<Reply> {
    const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`);
    return new Promise((resolve, reject) => {
      if (this.socket.destroyed) return reject(new Error('the connection is closed'));
      this.waiting.push({ resolve, reject });
      this.socket.write(`*${args.length}\r\n${parts.join('')}`);
    });
  }

  /** Ends the connection at once; what was still awaited rejects. */
  close(): void {
    this.socket.destroy();
  }

  private fail(reason: Error): void {
    for (const waiting of this.waiting.splice(0)) waiting.reject(reason);
  }

  private read(bytes: Buffer): void {
    this.unread = this.unread.length === 0 ? bytes : Buffer.concat([this.unread, bytes]);
    for (let parsed = parse(this.unread, 0); parsed; parsed = parse(this.unread, 0)) {
      this.unread = this.unread.subarray(parsed.end);
      const waiting = this.waiting.shift();
      if (parsed.reply instanceof Error) waiting?.reject(parsed.reply);
      else waiting?.resolve(parsed.reply);
    }
  }
}

function parse(bytes: Buffer, start: number): { reply: Reply; end: number } | undefined {
  const eol = bytes.indexOf('\r\n', start);
  if (eol < 0) return undefined;
  const line = bytes.toString('utf8', start + 1, eol);
  let end = eol + 2;
  switch (bytes[start]) {
    case 0x2b: // +
      return { reply: line, end };
    case 0x2d: // -
      return { reply: new Error(line), end };
    case 0x3a: // :
      return { reply: Number(line), end };
    case 0x24: {
      const length = Number(line);
      if (length < 0) return { reply: null, end };
      if (bytes.length < end + length + 2) return undefined;
      return { reply: bytes.toString('utf8', end, end + length), end: end + length + 2 };
    }
    case 0x2a: {
      const items: Reply[] = [];
      for (let left = Number(line); left > 0; left--) {
        const item = parse(bytes, end);
        if (!item) return undefined;
        items.push(item.reply);
        end = item.end;
      }
      return { reply: items, end };
    }
    default:
      return { reply: new Error(`not RESP2: ${line}`), end };
  }
}
