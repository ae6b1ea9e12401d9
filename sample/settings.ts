/** What the app must be told. A class, so that it can be injected by its type. */
export class Settings {
  constructor(
    /** `redis://...` */
    readonly redisUrl: string,
    /** Only folders in here may be audited: the app is asked over HTTP, and must not read the whole disk for anybody. */
    readonly root: string,
  ) {}
}
